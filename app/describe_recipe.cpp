#include "describe_recipe.h"

#include <fmt/format.h>

#include <vector>

namespace verbatim::app {

namespace {

/// "a", "a and b", "a, b and c"
std::string listed(const std::vector<std::string>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

std::string weights_words(const std::vector<std::string>& formats) {
  std::vector<std::string> packed;
  bool as_is = false;
  for (const std::string& name : formats) {
    if (name == "full") {
      as_is = true;
    } else if (name == "draft") {
      packed.push_back("what each matrix drafts with");
    } else {
      packed.push_back(name);
    }
  }
  if (packed.empty()) return "";
  return "the weights in " + listed(packed) + (as_is ? " too" : " alone");
}

std::string percent(float share) {
  return fmt::format("{:.3g} %", 100.0 * static_cast<double>(share));
}

}  // namespace

std::string level_words(const DraftLevel& level) {
  std::string words;
  switch (level.kind) {
    case DraftLevel::Kind::kSelf:
      words = level.reading;
      if (level.experts == 1) words += " through one expert";
      if (level.experts > 1) words += fmt::format(" through {} experts", level.experts);
      break;
    case DraftLevel::Kind::kModel:
      words = level.reading == "full" ? "another model" : "another model in " + level.reading;
      break;
    case DraftLevel::Kind::kNgram:
      words = level.table.empty() ? "n-grams" : "n-grams with a table";
      break;
  }
  if (level.cache == "window")
    words += fmt::format(" with the latest {} of the context", percent(level.budget));
  if (level.cache == "snapkv") words += fmt::format(" with {} of the prompt", percent(level.budget));
  if (level.layers == 0) return words;
  return fmt::format("the first {} in {}",
                     level.layers == 1 ? "layer" : fmt::format("{} layers", level.layers), words);
}

std::string drafts_words(const Recipe& recipe) {
  std::string words;
  for (const DraftLevel& level : recipe.levels) {
    if (!words.empty()) words += recipe.planned ? "; " : ", itself drafted for by ";
    words += level_words(level);
  }
  return words;
}

std::string needs_words(const Recipe& recipe) {
  std::vector<std::string> parts;
  const std::string weights = weights_words(recipe.formats());
  if (!weights.empty()) parts.push_back(weights);
  bool model = false;
  for (const DraftLevel& level : recipe.levels) {
    if (level.kind == DraftLevel::Kind::kModel && !model) {
      model = true;
      parts.push_back(!level.model.empty()         ? "the draft model " + level.model
                      : recipe.needs_draft_model() ? "a draft model (--draft-model)"
                                                   : "a draft model if there is one (--draft-model)");
    }
    if (level.kind == DraftLevel::Kind::kNgram && !level.table.empty()) {
      parts.push_back("the table " + level.table);
    }
  }
  return parts.empty() ? "nothing but the model" : listed(parts);
}

std::string guarantee_words(const Recipe& recipe) {
  const std::string_view guarantee = recipe.guarantee();
  if (guarantee == "bytes") return "the bytes of plain decoding";
  if (guarantee == "distribution") return "the distribution of plain decoding, not its bytes";
  return "none (the text may say other things than plain decoding)";
}

std::string lossy_warning(const Recipe& recipe) {
  if (recipe.lossless()) return "";
  const bool distributed = recipe.guarantee() == "distribution";
  return fmt::format("the recipe {} is not lossless: its text {}", recipe.name,
                     distributed ? "has the distribution of plain decoding, not its bytes"
                                 : "is neither that of plain decoding nor distributed as it");
}

}  // namespace verbatim::app
