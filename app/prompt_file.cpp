#include "prompt_file.h"

#include <filesystem>

#include "text_io.h"
#include "verbatim/prompts.h"

namespace verbatim::app {

PromptSet read_prompts(const std::string& path, int64_t limit) {
  return {.name = std::filesystem::path(path).stem().string(),
          .prompts = parse_prompts(read_text(path), path, limit)};
}

}  // namespace verbatim::app
