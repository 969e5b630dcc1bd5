#include "accelerator/parameters/hardware.h"

#include "accelerator/fail.h"
#include "accelerator/parameters/built_in.h"
#include "accelerator/parameters/fields.h"

namespace verbatim::accelerator {

namespace {

constexpr std::string_view kDramPrefix = "dram-";
constexpr int64_t kMostKib = int64_t{1} << 20;

void read_array(Fields& fields, Hardware& hardware) {
  hardware.tiles = fields.whole("array.tiles", 1, 4096);
  hardware.pes = fields.whole("array.pes", 1, 65536);
  hardware.clock_mhz = fields.whole("array.clock_mhz", 1, 10'000);
  hardware.draft_weights = fields.whole("array.draft_weights", 0, 64);
  hardware.groups_lie =
      static_cast<Hardware::GroupsLie>(fields.choice("array.groups_lie", {"across-pes", "within-pe"}));
  hardware.tiles_share =
      static_cast<Hardware::TilesShare>(fields.choice("array.tiles_share", {"outputs", "inputs", "rows"}));
  hardware.pipeline_cycles = fields.whole("array.pipeline_cycles", 0, 100'000);
  if (1'000'000 % hardware.clock_mhz != 0) {
    bad_input("{}: array.clock_mhz must divide a million, so that a cycle is a whole number of picoseconds",
              fields.where());
  }
}

void read_buffers(Fields& fields, Hardware& hardware) {
  hardware.weight_buffer = fields.whole("buffers.weights_kib", 1, kMostKib) * 1024;
  hardware.activation_buffer = fields.whole("buffers.activations_kib", 1, kMostKib) * 1024;
  hardware.output_buffer = fields.whole("buffers.outputs_kib", 1, kMostKib) * 1024;
  hardware.double_buffered = fields.flag("buffers.double");
  if (fields.has("block.outputs")) hardware.block_outputs = fields.whole("block.outputs", 1, 1 << 20);
  if (fields.has("block.inputs")) hardware.block_inputs = fields.whole("block.inputs", 1, 1 << 20);
}

void read_storage(Fields& fields, Hardware& hardware) {
  hardware.full_bits = fields.number("storage.full_bits", 0.5, 64);
  if (hardware.draft_weights > 0) {
    hardware.draft_bits = fields.number("storage.draft_bits", 0.5, 64);
  } else if (fields.has("storage.draft_bits")) {
    bad_input("{}: storage.draft_bits is for machines with a quantize mode, and array.draft_weights is 0",
              fields.where());
  }
  hardware.kv_bits = fields.number("storage.kv_bits", 0.5, 64);
  hardware.activation_bits = fields.number("storage.activation_bits", 0.5, 64);
  if (fields.has("storage.exceptions")) hardware.exceptions = fields.number("storage.exceptions", 0, 1);
  if (hardware.exceptions > 0 || fields.has("storage.exception_bits")) {
    hardware.exception_bits = fields.number("storage.exception_bits", 0, 256);
  }
}

void read_sfu(Fields& fields, Hardware& hardware) {
  hardware.sfu_lanes = fields.whole("sfu.lanes", 1, 1 << 20);
  hardware.sfu_latency_cycles = fields.whole("sfu.latency_cycles", 0, 1'000'000);
  hardware.norm_passes = fields.whole("sfu.norm", 1, 1000);
  hardware.rotation_passes = fields.whole("sfu.rotation", 1, 1000);
  hardware.softmax_passes = fields.whole("sfu.softmax", 1, 1000);
  hardware.activation_passes = fields.whole("sfu.activation", 1, 1000);
  hardware.logit_passes = fields.whole("sfu.logits", 1, 1000);
}

/// A block of weights that the file names must fit into its share of the buffer; what depends on the rows of
/// a pass is checked where blocks are cut.
void check_block(const Hardware& hardware, const std::string& where) {
  if (hardware.block_outputs == 0 || hardware.block_inputs == 0) return;
  const double bits = hardware.full_bits + hardware.exceptions * hardware.exception_bits;
  const double bytes =
      static_cast<double>(hardware.block_outputs) * static_cast<double>(hardware.block_inputs) * bits / 8;
  if (bytes > static_cast<double>(hardware.share_of(hardware.weight_buffer))) {
    bad_input("{}: a block of {} outputs and {} inputs takes {:.0f} bytes, and the buffer for weights has {}",
              where, hardware.block_outputs, hardware.block_inputs, bytes,
              hardware.share_of(hardware.weight_buffer));
  }
}

}  // namespace

Hardware parse_hardware(std::string_view toml, const std::string& where) {
  Fields fields(toml, where);
  Hardware hardware;
  hardware.name = fields.text("name");
  hardware.dram = fields.text("dram");
  read_array(fields, hardware);
  read_buffers(fields, hardware);
  read_storage(fields, hardware);
  read_sfu(fields, hardware);
  if (fields.has("power.full_mw")) hardware.full_mw = fields.number("power.full_mw", 0, 1e9);
  if (fields.has("power.draft_mw")) hardware.draft_mw = fields.number("power.draft_mw", 0, 1e9);
  fields.finish();
  check_block(hardware, where);
  return hardware;
}

Hardware load_hardware(const std::string& name_or_path) {
  if (name_or_path.ends_with(".toml")) return parse_hardware(read_file(name_or_path), name_or_path);
  for (const BuiltIn& one : built_in_hardware()) {
    if (one.name == name_or_path && !one.name.starts_with(kDramPrefix)) {
      return parse_hardware(one.toml, "hardware/" + name_or_path + ".toml");
    }
  }
  bad_input("there is no machine \"{}\": name one of {}, or a .toml file", name_or_path,
            fmt::join(hardware_names(), ", "));
}

std::vector<std::string> hardware_names() {
  std::vector<std::string> names;
  for (const BuiltIn& one : built_in_hardware()) {
    if (!one.name.starts_with(kDramPrefix)) names.emplace_back(one.name);
  }
  return names;
}

}  // namespace verbatim::accelerator
