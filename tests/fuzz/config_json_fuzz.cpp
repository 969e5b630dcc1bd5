// Any text as config.json and, after a zero byte, generation_config.json: an Error or a config that holds up.

#include <optional>
#include <string_view>

#include "checkpoint/hf_config.h"
#include "verbatim/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t split = input.find('\0');
  std::optional<std::string_view> generation;
  if (split != std::string_view::npos) generation = input.substr(split + 1);
  std::optional<verbatim::ModelConfig> config;
  try {
    config = verbatim::parse_hf_config(input.substr(0, split), generation, "fuzz");
  } catch (const verbatim::Error&) {
    return 0;
  }
  verbatim::validate(*config, "fuzz");  // outside the try: what was returned must pass
  return 0;
}
