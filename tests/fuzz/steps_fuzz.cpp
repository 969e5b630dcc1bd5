// Any text as a trace or as what `generate --json` prints: an Error, or steps that hold together and can be
// decoded.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "accelerator/decode.h"
#include "accelerator/workload/steps.h"
#include "verbatim/error.h"

namespace {

using namespace verbatim;
using namespace verbatim::accelerator;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Decodes on a model so small that many passes take little time.
void check_decoding(const Steps& steps) {
  static const Hardware hardware = load_hardware("speq");
  static const Dram dram = load_dram("hbm2");
  static const Shape shape{.name = "small",
                           .hidden = 128,
                           .intermediate = 128,
                           .layers = 1,
                           .heads = 1,
                           .kv_heads = 1,
                           .head_size = 128,
                           .vocabulary = 128};
  static PassRunner runner(hardware, service_of(dram), shape);
  std::optional<Decoding> decoding;
  try {
    decoding = decode(runner, hardware, dram, steps);
  } catch (const Error&) {
    return;  // the rows or the context do not fit the buffers
  }
  require(decoding->tokens == steps.tokens());
  require(decoding->passes == static_cast<int64_t>(steps.steps.size()));
  require(decoding->draft_passes == steps.draft_passes());
  require(decoding->time >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::optional<Steps> steps;
  try {
    steps = parse_steps(text, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  // Outside the try: what was returned must hold up.
  int64_t position = steps->steps.empty() ? 0 : steps->steps.front().position;
  for (const Step& step : steps->steps) {
    require(step.position == position && position >= 1);
    require(step.accepted >= 0 && step.accepted <= step.drafted && step.rows == step.drafted + 1);
    require(step.draft_passes >= 0);
    position += step.accepted + 1;
  }
  require(steps->prompt_tokens >= 0 && steps->tokens() >= static_cast<int64_t>(steps->steps.size()));
  require(parse_steps(text, "fuzz").steps == steps->steps);
  constexpr int64_t kMostDecoded = 300;
  constexpr int64_t kMostPosition = 4096;
  if (steps->draft_passes() <= kMostDecoded && steps->steps.size() <= kMostDecoded &&
      position <= kMostPosition) {
    check_decoding(*steps);
  }
  return 0;
}
