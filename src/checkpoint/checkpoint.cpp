#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/memory_map.h"
#include "base/printable.h"
#include "checkpoint/check_tensors.h"
#include "checkpoint/gguf_model.h"
#include "checkpoint/gpt2_tensors.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/layout.h"
#include "checkpoint/mxfp4_experts.h"
#include "checkpoint/quantized_tensors.h"
#include "checkpoint/safetensors.h"

namespace verbatim {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPossible = "a model is a folder in Hugging Face layout, a .gguf or a .vbt file";

bool begins_with(const fs::path& path, std::string_view magic) {
  try {
    const MemoryMap file(path);
    const auto bytes = file.bytes();
    return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kMachine) throw;
    return false;
  }
}

bool is_gguf(const fs::path& path) {
  return path.extension() == ".gguf" || begins_with(path, "GGUF");
}

/// Says why a folder without safetensors is no model, as far as its files tell.
[[noreturn]] void explain_folder(const fs::path& folder) {
  std::error_code failure;
  std::string gguf;
  bool pickled = false;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(".gguf") && (gguf.empty() || name < gguf)) gguf = name;
    pickled = pickled || name.ends_with(".bin") || name.ends_with(".pth") || name.ends_with(".pt");
  }
  const std::string where = folder.string();
  if (failure) bad_input("cannot read the folder {}: {}", where, failure.message());
  if (!gguf.empty())
    bad_input("{} is a folder; give the file {} in it", where, (folder / printable(gguf)).string());
  if (pickled) bad_input("{} has its weights as PyTorch pickles; convert them to safetensors", where);
  bad_input("{} holds no model.safetensors; {}", where, kPossible);
}

Checkpoint open_folder(const fs::path& folder) {
  std::error_code ignored;
  if (!has_safetensors(folder)) explain_folder(folder);
  if (!fs::exists(folder / "config.json", ignored)) {
    bad_input("{} has weights but no config.json; {}", folder.string(), kPossible);
  }
  Checkpoint checkpoint;
  checkpoint.path = folder;
  checkpoint.format = "safetensors";
  checkpoint.config = read_hf_config(folder);
  checkpoint.tokenizer = find_tokenizer(folder);
  SafetensorsModel model = open_safetensors(folder);
  checkpoint.tensors = std::move(model.tensors);
  checkpoint.files = std::move(model.files);
  const Architecture architecture = checkpoint.config.architecture;
  if (architecture == Architecture::kGptOss) split_mxfp4_experts(checkpoint);
  if (architecture == Architecture::kGpt2 || architecture == Architecture::kOpt) name_tensors(checkpoint);
  if (const std::optional<QuantizationConfig> quantization = read_quantization(folder)) {
    join_quantized_tensors(checkpoint, *quantization);
  }
  refuse_unexplained_types(checkpoint);
  return checkpoint;
}

Checkpoint open_unchecked(const fs::path& path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found) bad_input("{} does not exist; {}", path.string(), kPossible);
  if (failure) bad_input("cannot open {}: {}", path.string(), failure.message());
  if (is_packed(path)) {
    bad_input("{} is packed already; give the model that it was made from", path.string());
  }
  if (fs::is_directory(status)) return open_folder(path);
  if (!fs::is_regular_file(status))
    bad_input("{} is neither a file nor a folder; {}", path.string(), kPossible);
  if (path.extension() == ".safetensors")
    return open_folder(path.has_parent_path() ? path.parent_path() : ".");
  if (is_gguf(path)) return gguf_checkpoint(open_gguf(path), path);
  bad_input("{} is no model; {}", path.string(), kPossible);
}

}  // namespace

const TensorView& Checkpoint::tensor(const std::string& name, std::initializer_list<int64_t> shape) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    bad_input("{}: tensor {} is missing; the model is incomplete", path.string(), printable(name));
  }
  const TensorView& view = found->second;
  if (!std::equal(view.shape.begin(), view.shape.end(), shape.begin(), shape.end())) {
    const auto stored = [&view](std::vector<int64_t> sizes) {
      if (view.transposed) std::reverse(sizes.begin(), sizes.end());
      return shape_text(sizes);
    };
    bad_input("{}: tensor {} has the shape {} but should have {}", path.string(), printable(name),
              stored(view.shape), stored(shape));
  }
  return view;
}

fs::path packed_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  const fs::path inside = path / kPackedName;
  const bool only = fs::is_regular_file(inside, ignored) && !fs::exists(path / "config.json", ignored);
  return only ? inside : path;
}

bool is_packed(const fs::path& path) {
  const fs::path file = packed_file(path);
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return false;
  return file.extension() == ".vbt" || begins_with(file, kPackedMagic);
}

Checkpoint open_checkpoint(const fs::path& path) {
  Checkpoint checkpoint = open_unchecked(path);
  check_tensors(checkpoint);
  return checkpoint;
}

}  // namespace verbatim
