#include "load_model.h"

#include "fail.h"
#include "progress.h"
#include "text_io.h"

namespace verbatim::app {

Model load_model(const std::string& path, const std::vector<std::string>& formats, int32_t threads) {
  ModelOptions options;
  options.formats = formats;
  options.threads = threads;
  return load_model(path, std::move(options));
}

Model load_model(const std::string& path, ModelOptions options) {
  options.progress = [](double fraction) { show_progress("packing the weights", fraction); };
  Model model = Model::load(path, options);
  end_progress();
  for (const std::string& warning : model.warnings()) {
    say("verbatim: warning: {}\n", one_line(warning));
  }
  return model;
}

std::optional<Model> load_draft_model(const CommonOptions& options, const Recipe& recipe) {
  std::string path = options.draft_model;
  bool drafts = false;
  for (const DraftLevel& level : recipe.levels) {
    if (level.kind != DraftLevel::Kind::kModel) continue;
    drafts = true;
    if (path.empty()) path = level.model;
  }
  if (!drafts && !path.empty()) {
    fail(ErrorKind::kUsage,
         "the recipe {} drafts with no other model: leave out --draft-model, or name a "
         "recipe that does, as `verbatim recipes` lists them",
         recipe.name);
  }
  if (!drafts || (path.empty() && recipe.planned)) return std::nullopt;
  if (path.empty()) {
    fail(ErrorKind::kUsage, "the recipe {} drafts with another model: name one with --draft-model",
         recipe.name);
  }
  try {
    return load_model(path, {.recipes = {recipe}, .drafts = true, .threads = options.threads});
  } catch (const Error& error) {
    fail(error.kind(), "the draft model: {}", error.what());
  }
}

void print_warnings(const std::string& model, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    say("verbatim: warning: {}: {}\n", one_line(model), one_line(warning));
  }
}

}  // namespace verbatim::app
