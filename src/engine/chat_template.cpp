#include "verbatim/chat_template.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/model_access.h"
#include "templates/built_in.h"
#include "templates/evaluator.h"
#include "templates/parser.h"
#include "text/chat_format.h"

namespace verbatim {

struct ChatTemplate::Program {
  std::string source;
  jinja::Template parsed;
  bool own = false;
  std::shared_ptr<const Program> with_tools = nullptr;  ///< takes its place when there are tools

  static std::shared_ptr<const Program> make(std::string_view source, bool own,
                                             std::shared_ptr<const Program> with_tools = nullptr) {
    auto program = std::make_shared<Program>();
    program->source = source;
    program->parsed = jinja::parse(source);
    program->own = own;
    program->with_tools = std::move(with_tools);
    return program;
  }

  bool reads(std::string_view variable) const {
    for (size_t i = 0; i < parsed.names.size(); ++i) {
      if (parsed.names[i] == variable && parsed.read[i]) return true;
    }
    return with_tools != nullptr && with_tools->reads(variable);
  }
};

namespace {

bool has_tools(std::string_view variables) {
  const nlohmann::json json = nlohmann::json::parse(variables, nullptr, false);
  const auto tools = json.is_object() ? json.find("tools") : json.end();
  return json.is_object() && tools != json.end() && !tools->empty() && !tools->is_null();
}

/// The spellings of a model's special tokens, as its files give them or else as its vocabulary does.
std::vector<jinja::OwnText> own_texts(const Model& model) {
  const ModelData& data = data_of(model);
  std::vector<jinja::OwnText> texts = data.conversation.special_tokens;
  const auto add = [&](const char* name, std::optional<int32_t> token) {
    for (const auto& text : texts) {
      if (text.first == name) return;
    }
    if (token) texts.emplace_back(name, model.piece(*token));
  };
  const Tokenizer& tokenizer = data.text();
  add("bos_token", tokenizer.bos());
  std::optional<int32_t> eos = tokenizer.eos();
  if (!eos && !model.eos_tokens().empty()) eos = model.eos_tokens().front();
  add("eos_token", eos);
  return texts;
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source) : program_(Program::make(source, false)) {}

ChatTemplate ChatTemplate::of(const Model& model) {
  const ModelData& data = data_of(model);
  data.text();
  const ChatTemplateSource& source = data.conversation;
  if (!source.text) return built_in(detect_chat_format(data.text()).name);
  try {
    return ChatTemplate(Program::make(
        *source.text, true, source.text_with_tools ? Program::make(*source.text_with_tools, true) : nullptr));
  } catch (const Error& error) {
    bad_input("{}: {}", data.checkpoint.path.string(), error.what());
  }
}

ChatTemplate ChatTemplate::built_in(std::string_view format) {
  return ChatTemplate(jinja::built_in_template(format));
}

std::vector<PromptPart> ChatTemplate::render(std::string_view variables, const Model* model) const {
  const bool tools = program_->with_tools != nullptr && has_tools(variables);
  const jinja::Template& chosen = tools ? program_->with_tools->parsed : program_->parsed;
  const std::vector<jinja::OwnText> own =
      model == nullptr ? std::vector<jinja::OwnText>() : own_texts(*model);
  const jinja::TracedText text = jinja::render(chosen, variables, own, std::time(nullptr));
  std::vector<PromptPart> parts;
  size_t begin = 0;
  for (const jinja::TracedText::Run& run : text.runs()) {
    parts.push_back({text.bytes().substr(begin, run.end - begin), run.from_template});
    begin = run.end;
  }
  return parts;
}

const std::string& ChatTemplate::source() const {
  return program_->source;
}

bool ChatTemplate::own() const {
  return program_->own;
}

bool ChatTemplate::reads(std::string_view variable) const {
  return program_->reads(variable);
}

std::vector<int32_t> encode(const Model& model, const std::vector<PromptPart>& prompt, bool add_bos) {
  std::string text;
  std::vector<ByteRange> ranges;
  for (const PromptPart& part : prompt) {
    const size_t begin = text.size();
    text += part.text;
    if (!part.from_template || part.text.empty()) continue;
    if (!ranges.empty() && ranges.back().end == begin) {
      ranges.back().end = text.size();
    } else {
      ranges.push_back({begin, text.size()});
    }
  }
  const Tokenizer& tokenizer = data_of(model).text();
  std::vector<int32_t> tokens = tokenizer.encode(text, {.add_bos = false, .special_within = &ranges});
  const std::vector<int32_t> beginning = tokenizer.encode("", {.add_bos = true});
  const bool begun = !tokens.empty() && !beginning.empty() && tokens.front() == beginning.front();
  if (!add_bos || begun) return tokens;
  tokens.insert(tokens.begin(), beginning.begin(), beginning.end());
  return tokens;
}

}  // namespace verbatim
