#include "verbatim/inflate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/float16.h"
#include "base/memory_map.h"
#include "base/new_folder.h"
#include "base/printable.h"
#include "checkpoint/block_norms.h"
#include "checkpoint/expert_names.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/layout.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/tensor_names.h"
#include "prepare/inflate_config.h"

namespace verbatim {

namespace fs = std::filesystem;

namespace {

constexpr size_t kBlockBytes = size_t{4} << 20;
constexpr int32_t kMostLayers = 1024;  // what validate() lets pass

/// A tensor of the larger model, and how it is made from a tensor of the smaller one.
struct Task {
  TensorEntry entry;
  const TensorView* source = nullptr;
  std::vector<int64_t> parts = {};  // the numbers of rows of its parts, if it is made of several
  int32_t row_copies = 1;           // each part is there so often, one below the other
  int32_t column_copies = 1;        // and so often side by side
  bool divide = false;              // by the number of copies, so that what reads them sums to the same
  bool zero = false;
};

/// The copies of a channel hold the same number, so a matrix that reads all copies computes the same if its
/// weights are divided by the number of copies. Whole copies lie behind each other (0 1 2 0 1 2, not 0 0 1 1
/// 2 2): so query head h still shares key-value head h / group, and groups of neighbouring weights with a
/// common scale are unchanged, which keeps drafts as good as before.
class Planner {
 public:
  Planner(const Checkpoint& checkpoint, int32_t width) : checkpoint_(checkpoint), width_(width) {}

  std::vector<Task> plan(const std::vector<InflatedLayer>& layers) {
    const bool tied = checkpoint_.config.tied_embeddings;
    const std::string embedding = "model.embed_tokens.weight";
    add(embedding, embedding, {.column_copies = width_});
    for (size_t i = 0; i < layers.size(); ++i) {
      add_layer(static_cast<int32_t>(i), layers[i]);
    }
    // A tied output matrix is the embedding, which cannot be divided; the norm before it can.
    const Change final_norm = {.column_copies = width_, .divide = tied};
    add("model.norm.weight", "model.norm.weight", final_norm);
    if (checkpoint_.config.layer_norm) add("model.norm.bias", "model.norm.bias", final_norm);
    if (!tied) add("lm_head.weight", "lm_head.weight", {.column_copies = width_, .divide = true});
    return std::move(tasks_);
  }

 private:
  struct Change {
    int32_t row_copies = 1;
    int32_t column_copies = 1;
    bool divide = false;
    bool zero = false;
    std::vector<int64_t> parts = {};
  };

  void add(const std::string& name, const std::string& source, const Change& change) {
    const TensorView& view = checkpoint_.tensors.at(source);
    std::vector<int64_t> shape = view.shape;
    shape.back() *= change.column_copies;
    if (shape.size() > 1) shape.front() *= change.row_copies;
    tasks_.push_back({{name, view.dtype, shape},
                      &view,
                      change.parts,
                      change.row_copies,
                      change.column_copies,
                      change.divide && width_ > 1,
                      change.zero});
  }

  void add_layer(int32_t layer, const InflatedLayer& made) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    const std::string from = fmt::format("model.layers.{}.", made.source);
    const auto add_part = [&](const std::string& name, const Change& change) {
      add(prefix + name, from + name, change);
    };
    const Change vector = {.column_copies = width_};
    const Change inner = {.row_copies = width_, .column_copies = width_, .divide = true};
    const Change last = {
        .row_copies = width_, .column_copies = width_, .divide = true, .zero = made.adds_nothing};
    const BlockNormNames norms = block_norm_names(checkpoint_.config);
    for (const std::string_view norm :
         {norms.before_attention, norms.after_attention, norms.before_mlp, norms.after_mlp}) {
      if (norm.empty()) continue;
      add_part(fmt::format("{}.weight", norm), vector);
      if (checkpoint_.config.layer_norm) add_part(fmt::format("{}.bias", norm), vector);
    }
    const ModelConfig& config = checkpoint_.config;
    const Change last_bias = {.column_copies = width_, .zero = made.adds_nothing};
    const auto add_fused = [&](const char* name, std::vector<int64_t> parts) {
      Change fused = inner;
      fused.parts = std::move(parts);
      add_part(name, fused);
    };
    if (config.fused_qkv) {
      const int64_t query = int64_t{config.heads} * config.head_dim;
      const int64_t key = int64_t{config.kv_heads} * config.head_dim;
      add_fused("self_attn.qkv_proj.weight", {query, key, key});
    }
    for (const char* which : {"q", "k", "v"}) {
      if (config.fused_qkv) break;
      add_part(fmt::format("self_attn.{}_proj.weight", which), inner);
      if (checkpoint_.config.qkv_bias) add_part(fmt::format("self_attn.{}_proj.bias", which), vector);
    }
    if (checkpoint_.config.head_norm != HeadNorm::kNone) {
      // The weights of a norm per head belong to the elements of a head, which stay as many.
      const bool whole = checkpoint_.config.head_norm == HeadNorm::kWhole;
      for (const char* which : {"q", "k"}) {
        add_part(fmt::format("self_attn.{}_norm.weight", which), whole ? vector : Change{});
      }
    }
    add_part("self_attn.o_proj.weight", last);
    if (config.output_bias) add_part("self_attn.o_proj.bias", last_bias);
    if (has_experts(config, made.source)) {
      // There are as many experts as before, each wider, with the same scores.
      const ExpertNames names = expert_names(config);
      add_part(names.router_weight(), {.column_copies = width_, .divide = true});
      for (int32_t e = 0; e < config.experts.count; ++e) {
        add_part(names.weight(e, names.gate), inner);
        add_part(names.weight(e, names.up), inner);
        add_part(names.weight(e, names.down), last);
      }
      return;
    }
    const TensorNames names = tensor_names(config);
    if (config.fused_gate_up) {
      add_fused("mlp.gate_up_proj.weight", {config.intermediate_size, config.intermediate_size});
    } else {
      if (!config.plain_mlp) add_part("mlp.gate_proj.weight", inner);
      add_part(fmt::format("mlp.{}.weight", names.up), inner);
    }
    add_part(fmt::format("mlp.{}.weight", names.down), last);
    if (!config.mlp_bias) return;
    add_part(fmt::format("mlp.{}.bias", names.up), vector);
    add_part(fmt::format("mlp.{}.bias", names.down), last_bias);
  }

  const Checkpoint& checkpoint_;
  int32_t width_;
  std::vector<Task> tasks_;
};

float as_float(float value) {
  return value;
}
float as_float(BFloat16 value) {
  return to_float(value);
}
float as_float(Float16 value) {
  return to_float(value);
}
void narrow(float value, float& out) {
  out = value;
}
void narrow(float value, BFloat16& out) {
  out = to_bfloat16(value);
}
void narrow(float value, Float16& out) {
  out = to_float16(value);
}

/// Divides each element by `divisor`, a power of two. Returns the first that cannot be divided exactly: the
/// smallest numbers of a type lose digits.
template <typename T>
std::optional<float> divide(std::byte* row, size_t count, float divisor) {
  for (size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, row + i * sizeof(T), sizeof(T));
    const float value = as_float(element);
    narrow(value / divisor, element);
    if (as_float(element) * divisor != value && !std::isnan(value)) return value;
    std::memcpy(row + i * sizeof(T), &element, sizeof(T));
  }
  return std::nullopt;
}

std::optional<float> divide(DType dtype, std::byte* row, size_t count, int32_t divisor) {
  const auto by = static_cast<float>(divisor);
  switch (dtype) {
    case DType::kF32:
      return divide<float>(row, count, by);
    case DType::kF16:
      return divide<Float16>(row, count, by);
    case DType::kBF16:
      return divide<BFloat16>(row, count, by);
    default:
      break;
  }
  fail(ErrorKind::kUsage, "{} cannot be enlarged", dtype_name(dtype));
}

/// Writes shards, tensor by tensor, in blocks that fit into memory.
class Inflater {
 public:
  Inflater(const Checkpoint& checkpoint, const InflateOptions& options, const std::vector<Task>& tasks)
      : checkpoint_(checkpoint), options_(options) {
    for (const Task& task : tasks) total_ += *stored_bytes(task.entry.dtype, task.entry.shape);
  }

  uint64_t total() const { return total_; }

  /// Returns false when it was cancelled.
  bool write_file(const fs::path& path, std::span<const Task> tasks) {
    std::vector<TensorEntry> entries;
    for (const Task& task : tasks) entries.push_back(task.entry);
    SafetensorsWriter writer(path, entries);
    for (const Task& task : tasks) {
      if (!write_tensor(writer, task)) return false;
    }
    writer.finish();
    return true;
  }

 private:
  bool write_tensor(SafetensorsWriter& writer, const Task& task) {
    const TensorView& source = *task.source;
    const auto columns = static_cast<size_t>(source.columns());
    const size_t row_bytes = dtype_bytes(source.dtype, columns);
    const size_t wide_bytes = row_bytes * static_cast<size_t>(task.column_copies);
    const int64_t per_block = std::max<int64_t>(1, static_cast<int64_t>(kBlockBytes / wide_bytes));
    std::vector<int64_t> parts = task.parts;
    if (parts.empty()) parts.push_back(source.rows());
    int64_t part_begin = 0;
    for (const int64_t rows : parts) {
      const int64_t part_end = part_begin + rows;
      for (int32_t copy = 0; copy < task.row_copies; ++copy) {
        for (int64_t first = part_begin; first < part_end; first += per_block) {
          const int64_t end = std::min(part_end, first + per_block);
          block_.assign(static_cast<size_t>(end - first) * wide_bytes, std::byte{0});
          for (int64_t r = first; r < end && !task.zero; ++r) {
            fill_row(task, source.data.data() + static_cast<size_t>(r) * row_bytes, row_bytes,
                     block_.data() + static_cast<size_t>(r - first) * wide_bytes);
          }
          writer.write(block_);
          if (!advance(block_.size())) return false;
        }
      }
      part_begin = part_end;
    }
    return true;
  }

  void fill_row(const Task& task, const std::byte* from, size_t row_bytes, std::byte* to) const {
    std::memcpy(to, from, row_bytes);
    if (task.divide) {
      const auto columns = static_cast<size_t>(task.source->columns());
      if (const auto inexact = divide(task.source->dtype, to, columns, task.column_copies)) {
        bad_input(
            "{}: tensor {} holds {}, which {} cannot hold divided by {}; take a smaller width or store the "
            "model as F32",
            checkpoint_.path.string(), task.entry.name, *inexact, dtype_name(task.source->dtype),
            task.column_copies);
      }
    }
    for (int32_t copy = 1; copy < task.column_copies; ++copy) {
      std::memcpy(to + row_bytes * static_cast<size_t>(copy), to, row_bytes);
    }
  }

  bool advance(uint64_t bytes) {
    done_ += bytes;
    if (options_.progress) options_.progress(static_cast<double>(done_) / static_cast<double>(total_));
    return !options_.cancelled || !options_.cancelled();
  }

  const Checkpoint& checkpoint_;
  const InflateOptions& options_;
  std::vector<std::byte> block_;
  uint64_t total_ = 0;
  uint64_t done_ = 0;
};

/// Cuts the tensors into runs, one for each file.
std::vector<std::span<const Task>> cut_into_shards(std::span<const Task> tasks, uint64_t shard_bytes) {
  std::vector<std::span<const Task>> shards;
  size_t first = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const uint64_t more = *stored_bytes(tasks[i].entry.dtype, tasks[i].entry.shape);
    if (i > first && bytes + more > shard_bytes) {
      shards.push_back(tasks.subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += more;
  }
  shards.push_back(tasks.subspan(first));
  return shards;
}

bool write_shards(Inflater& inflater, const NewFolder& folder,
                  const std::vector<std::span<const Task>>& shards) {
  if (shards.size() == 1) return inflater.write_file(folder.path() / "model.safetensors", shards.front());
  nlohmann::ordered_json index;
  index["metadata"] = {{"total_size", inflater.total()}};
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    if (!inflater.write_file(folder.path() / name, shards[i])) return false;
    for (const Task& task : shards[i]) index["weight_map"][task.entry.name] = name;
  }
  folder.write("model.safetensors.index.json", index.dump(2) + "\n");
  return true;
}

/// The files that an ordinary model has beside its weights and config.json, its licence included.
void copy_companions(const fs::path& from, const NewFolder& folder) {
  for (const char* name :
       {"generation_config.json", "tokenizer.model", "tokenizer.json", "tokenizer_config.json",
        "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "chat_template.jinja",
        "chat_template.json", "LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE", "NOTICE.txt"}) {
    std::error_code ignored;
    if (fs::is_regular_file(from / name, ignored)) folder.copy(from / name);
  }
}

std::string read_all(const fs::path& path) {
  const MemoryMap file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

void check_options(const Checkpoint& checkpoint, const InflateOptions& options) {
  const std::string where = checkpoint.path.string();
  if (options.width != 1 && options.width != 2 && options.width != 4 && options.width != 8) {
    fail(ErrorKind::kUsage, "a width of {} is not possible; 1, 2, 4 and 8 are", options.width);
  }
  if (checkpoint.format != "safetensors") {
    bad_input("{} is a GGUF file; only a folder with safetensors can be enlarged, so give the model as that",
              where);
  }
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (tensor.scaled == nullptr) continue;
    bad_input(
        "{} is quantized (tensor {}), and only weights in F32, F16 or BF16 can be enlarged: give the "
        "original",
        where, printable(name));
  }
  if (checkpoint.config.architecture == Architecture::kGptOss) {
    bad_input("{} has its experts in MXFP4, which cannot be enlarged", where);
  }
  if (checkpoint.config.learned_positions) {
    bad_input("{} has learned positions; models of {} cannot be enlarged", where,
              architecture_name(checkpoint.config.architecture));
  }
  if (options.width > 1 && checkpoint.config.norms_less_one) {
    bad_input(
        "{} cannot be made wider, as the factor on its embedding follows from the width; give a depth alone",
        where);
  }
  if (options.depth != 0 && options.depth < checkpoint.config.layers) {
    bad_input("{} has {} layers already; a depth of {} would take some away", where, checkpoint.config.layers,
              options.depth);
  }
  if (options.depth > kMostLayers) {
    bad_input("a depth of {} is too much; models of at most {} layers are supported", options.depth,
              kMostLayers);
  }
}

void check_room(const fs::path& folder, uint64_t bytes) {
  std::error_code failure;
  const fs::space_info space = fs::space(folder, failure);
  if (failure || space.available >= bytes) return;
  fail(ErrorKind::kMachine, "the disk has room for {} MB at {}, but {} MB are needed; make room",
       space.available / 1'000'000, folder.parent_path().string(), bytes / 1'000'000);
}

}  // namespace

std::optional<InflateReport> inflate_model(const fs::path& model, const fs::path& folder,
                                           const InflateOptions& options) {
  const Checkpoint checkpoint = open_checkpoint(model);
  check_options(checkpoint, options);
  const int32_t depth = options.depth == 0 ? checkpoint.config.layers : options.depth;
  const std::vector<InflatedLayer> layers = inflated_layers(checkpoint.config.layers, depth);
  const std::string config =
      inflated_config(read_all(checkpoint.path / "config.json"), checkpoint, options.width, layers);
  parse_hf_config(config, std::nullopt, folder.string());  // sizes that nothing could load

  const std::vector<Task> tasks = Planner(checkpoint, options.width).plan(layers);
  const std::vector<std::span<const Task>> shards = cut_into_shards(tasks, options.shard_bytes);
  Inflater inflater(checkpoint, options, tasks);
  NewFolder result(folder);
  check_room(result.path(), inflater.total());
  result.write("config.json", config);
  result.write("README.md", inflated_readme(checkpoint, options.width, depth));
  copy_companions(checkpoint.path, result);
  if (!write_shards(inflater, result, shards)) return std::nullopt;
  open_checkpoint(result.path());  // what does not open is not handed out
  result.keep();

  InflateReport report = {.bytes = inflater.total(), .files = static_cast<int32_t>(shards.size())};
  for (const Task& task : tasks) {
    report.parameters += task.source->rows() * task.source->columns() * task.row_copies * task.column_copies;
  }
  return report;
}

}  // namespace verbatim
