// Any text as a machine and as a memory: an Error, or one that can be simulated.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "accelerator/cycles/engine.h"
#include "accelerator/cycles/product.h"
#include "accelerator/dram/dram.h"
#include "accelerator/dram/service.h"
#include "accelerator/parameters/hardware.h"
#include "verbatim/error.h"

namespace {

using namespace verbatim;
using namespace verbatim::accelerator;

void require(bool holds) {
  if (!holds) std::abort();
}

/// What `parse` makes of the text; nothing: it is refused, with a message of one line.
template <typename Parse>
auto parsed(const Parse& parse) -> std::optional<decltype(parse())> {
  try {
    return parse();
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::kBadInput &&
            std::string_view(error.what()).find('\n') == std::string_view::npos);
    return std::nullopt;
  }
}

void simulate(const Hardware& hardware, const Dram& dram) {
  for (const Mode mode : {Mode::kFull, Mode::kDraft}) {
    if (hardware.lanes(mode) == 0) continue;
    for (const int64_t rows : {1, 5}) {
      const Product product{.rows = rows,
                            .outputs = 300,
                            .inputs = 300,
                            .mode = mode,
                            .weight_bits = hardware.weight_bits(mode),
                            .sfu_passes = hardware.norm_passes};
      const auto segments = parsed([&] { return cut(hardware, product); });
      if (!segments) continue;
      MachineClock clock(hardware, service_of(dram));
      for (const Segment& segment : *segments) clock.run(segment);
      const Totals& totals = clock.totals();
      require(totals.macs == rows * 300 * 300);
      require(clock.end() >= totals.array_cycles * hardware.cycle_ps() && clock.end() >= totals.memory_ps);
      require(totals.macs <= totals.array_cycles * peak_macs(hardware, mode));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const Hardware speq = load_hardware("speq");
  static const Dram ddr4 = load_dram("ddr4-3200");
  if (const auto hardware = parsed([&] { return parse_hardware(text, "fuzz"); })) simulate(*hardware, ddr4);
  if (const auto dram = parsed([&] { return parse_dram(text, "fuzz"); })) {
    require(dram->peak_bytes_per_second() > 0 && service_of(*dram).efficiency() > 0);
    simulate(speq, *dram);
  }
  return 0;
}
