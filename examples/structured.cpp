// Reads several texts at once into JSON of a given form: every reply fits the schema, whatever the model
// would rather say.
//
//   structured MODEL TEXT...

#include <iostream>
#include <string>
#include <vector>

#include <verbatim/verbatim.h>

namespace {

constexpr const char* kSchema = R"({
  "type": "object",
  "properties": {
    "language": {"enum": ["Python", "C", "English"]},
    "confident": {"type": "boolean"},
    "lines": {"type": "integer", "minimum": 0, "maximum": 99}
  },
  "required": ["language", "confident", "lines"],
  "additionalProperties": false
})";

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: structured MODEL TEXT...\n";
    return 2;
  }
  try {
    const verbatim::Recipe recipe = verbatim::load_recipe("auto");
    const verbatim::Model model = verbatim::Model::load(argv[1], {.recipes = {recipe}});
    verbatim::Engine engine(model);

    verbatim::GenerateOptions options;
    options.max_tokens = 200;
    options.structure = verbatim::Structure::json_schema(kSchema);

    // All are submitted before the first is waited for, so that they share passes.
    std::vector<verbatim::TokenStream> streams;
    for (int i = 2; i < argc; ++i) {
      const std::string prompt = std::string("Text: ") + argv[i] + "\nJSON: ";
      streams.push_back(
          engine.submit({.prompt = model.encode(prompt), .options = options, .recipe = recipe}));
    }
    for (verbatim::TokenStream& stream : streams) std::cout << stream.wait().text << '\n';

    const verbatim::EngineStats stats = engine.stats();
    std::cerr << streams.size() << " texts in " << stats.whole_model.count << " passes, "
              << static_cast<double>(stats.whole_model.rows) / static_cast<double>(stats.whole_model.count)
              << " tokens each\n";
  } catch (const verbatim::Error& error) {
    std::cerr << "structured: " << error.what() << '\n';
    return static_cast<int>(error.kind());
  }
}
