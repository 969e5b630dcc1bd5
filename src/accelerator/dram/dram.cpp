#include "accelerator/dram/dram.h"

#include <algorithm>

#include "accelerator/dram/bank_model.h"
#include "accelerator/dram/service.h"
#include "accelerator/fail.h"
#include "accelerator/parameters/built_in.h"
#include "accelerator/parameters/fields.h"

namespace verbatim::accelerator {

namespace {

constexpr std::string_view kMemoryPrefix = "dram-";
constexpr int64_t kMostCycles = 100'000'000;

void read_timing(Fields& fields, Dram& dram) {
  dram.clock_ps = fields.whole("timing.clock_ps", 50, 1'000'000);
  dram.beats_per_clock = fields.whole("timing.beats_per_clock", 1, 64);
  const auto cycles = [&](const char* name) {
    return fields.whole(std::string("timing.") + name, 1, kMostCycles);
  };
  dram.tCL = cycles("tCL");
  dram.tCWL = cycles("tCWL");
  dram.tRCD = cycles("tRCD");
  dram.tRP = cycles("tRP");
  dram.tRP_all = cycles("tRP_all");
  dram.tRAS = cycles("tRAS");
  dram.tRC = cycles("tRC");
  dram.tCCD_S = cycles("tCCD_S");
  dram.tCCD_L = cycles("tCCD_L");
  dram.tRRD_S = cycles("tRRD_S");
  dram.tRRD_L = cycles("tRRD_L");
  dram.tFAW = cycles("tFAW");
  dram.tRTP = cycles("tRTP");
  dram.tWR = cycles("tWR");
  dram.tWTR_S = cycles("tWTR_S");
  dram.tWTR_L = cycles("tWTR_L");
  dram.tRFC = cycles("tRFC");
  dram.tREFI = cycles("tREFI");
}

/// The energy of a bit as the file has it, or from the supplies of a device that reads without pause.
void read_energy(Fields& fields, Dram& dram) {
  if (!fields.has("energy")) return;
  dram.energy_source = fields.text("energy.source");
  if (fields.has("energy.pj_per_bit")) {
    dram.pj_per_bit = fields.number("energy.pj_per_bit", 0, 1e6);
    return;
  }
  double milliwatts = 0;
  for (const auto& [volts, milliamperes] : fields.pairs("energy.supplies", 0, 1e6)) {
    milliwatts += volts * milliamperes;
  }
  dram.pj_per_bit = milliwatts / fields.number("energy.device_gigabits", 1e-3, 1e6);
}

}  // namespace

int64_t Dram::pace() const {
  const int64_t round = (tCCD_L + bank_groups - 1) / bank_groups;
  return std::max({tCCD_S, round, burst_cycles()});
}

double Dram::peak_bytes_per_second() const {
  return static_cast<double>(channels * burst_bytes()) * 1e12 / static_cast<double>(pace() * clock_ps);
}

void check_timings(const Dram& dram, const std::string& where) {
  const auto require = [&](bool holds, std::string_view rule, std::string_view values) {
    if (!holds) bad_input("{}: impossible timing: {}, but {}", where, rule, values);
  };
  require(dram.tRC >= dram.tRAS + dram.tRP, "tRC is at least tRAS + tRP",
          fmt::format("{} < {} + {}", dram.tRC, dram.tRAS, dram.tRP));
  require(dram.tRAS >= dram.tRCD, "tRAS is at least tRCD", fmt::format("{} < {}", dram.tRAS, dram.tRCD));
  require(dram.tRP_all >= dram.tRP, "tRP_all is at least tRP",
          fmt::format("{} < {}", dram.tRP_all, dram.tRP));
  require(dram.tCCD_L >= dram.tCCD_S, "tCCD_L is at least tCCD_S",
          fmt::format("{} < {}", dram.tCCD_L, dram.tCCD_S));
  require(dram.tRRD_L >= dram.tRRD_S, "tRRD_L is at least tRRD_S",
          fmt::format("{} < {}", dram.tRRD_L, dram.tRRD_S));
  require(dram.tWTR_L >= dram.tWTR_S, "tWTR_L is at least tWTR_S",
          fmt::format("{} < {}", dram.tWTR_L, dram.tWTR_S));
  require(dram.tFAW >= dram.tRRD_S, "tFAW is at least tRRD_S",
          fmt::format("{} < {}", dram.tFAW, dram.tRRD_S));
  require(dram.burst_length % dram.beats_per_clock == 0, "a burst takes whole cycles",
          fmt::format("{} beats are no multiple of {}", dram.burst_length, dram.beats_per_clock));
  require(dram.channel_bits % 8 == 0, "a channel has whole bytes",
          fmt::format("it has {} bits", dram.channel_bits));
  require(dram.row_bytes % dram.burst_bytes() == 0, "a row holds whole bursts",
          fmt::format("{} bytes are no multiple of {}", dram.row_bytes, dram.burst_bytes()));
  const int64_t outage = dram.tRTP + dram.tRP_all + dram.tRFC + dram.tRCD + dram.bank_groups * dram.tRRD_S;
  // A refresh waits for the end of a turn through the rows that are open.
  const int64_t turn = dram.bank_groups * dram.bursts_per_row() * dram.pace();
  require(dram.tREFI > turn + outage, "tREFI leaves time between refreshes for the rows that are open",
          fmt::format("{} <= {} + {}", dram.tREFI, turn, outage));
  // The cycle model takes the closed form's time, so commands must be able to keep it.
  const int64_t bursts = std::min<int64_t>(8 * turn / dram.pace() + 3 * dram.tREFI / dram.pace(), 200'000);
  const int64_t taken = stream_reads(dram, bursts, nullptr).end;
  const int64_t expected = closed_form_cycles(dram, bursts);
  require(taken == expected, "rows can be opened while others are read",
          fmt::format("{} bursts take {} cycles in place of {}", bursts, taken, expected));
}

Dram parse_dram(std::string_view toml, const std::string& where) {
  Fields fields(toml, where);
  Dram dram;
  dram.name = fields.text("name");
  fields.text("standard");
  dram.channels = fields.whole("organization.channels", 1, 4096);
  dram.channel_bits = fields.whole("organization.channel_bits", 8, 4096);
  dram.burst_length = fields.whole("organization.burst_length", 1, 256);
  dram.bank_groups = fields.whole("organization.bank_groups", 1, 16);
  dram.banks_per_group = fields.whole("organization.banks_per_group", 2, 64);
  dram.row_bytes = fields.whole("organization.row_bytes", 64, 1 << 20);
  read_timing(fields, dram);
  read_energy(fields, dram);
  fields.finish();
  check_timings(dram, where);
  return dram;
}

Dram load_dram(const std::string& name_or_path) {
  if (name_or_path.ends_with(".toml")) return parse_dram(read_file(name_or_path), name_or_path);
  for (const BuiltIn& one : built_in_hardware()) {
    if (one.name.starts_with(kMemoryPrefix) && one.name.substr(kMemoryPrefix.size()) == name_or_path) {
      return parse_dram(one.toml, fmt::format("hardware/{}.toml", one.name));
    }
  }
  bad_input("there is no memory \"{}\": name one of {}, or a .toml file", name_or_path,
            fmt::join(dram_names(), ", "));
}

std::vector<std::string> dram_names() {
  std::vector<std::string> names;
  for (const BuiltIn& one : built_in_hardware()) {
    if (one.name.starts_with(kMemoryPrefix)) names.emplace_back(one.name.substr(kMemoryPrefix.size()));
  }
  return names;
}

}  // namespace verbatim::accelerator
