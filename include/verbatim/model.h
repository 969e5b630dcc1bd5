#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

struct ModelData;

struct ModelOptions {
  /// The formats to pack the weights into, by name ("bf16", "mxbf16", ...); "full" is the model's own type.
  /// Empty: "full" alone. A .vbt file is packed already and must hold what is asked for here, any lossless
  /// format for "full"; empty takes all that it holds.
  std::vector<std::string> formats;
  /// A .safetensors file with the loss's sensitivity to each weight, for `squeeze3` and `squeeze4`; or empty.
  std::filesystem::path sensitivities;
  /// `squeeze3` and `squeeze4` without the sparse part.
  bool dense_only = false;
  /// For comparisons: rounds the weights of every output column to so many bits, uniformly, before they are
  /// packed (formats/round_to_nearest.h); 0 leaves them as they are.
  int32_t round_to_bits = 0;
  /// Threads to pack with; 0 takes every processor this process may run on.
  int32_t threads = 0;
  /// Called now and then during loading with the fraction done, from 0 to 1.
  std::function<void(double)> progress;
};

/// A model that is loaded and packed. Copies share the weights; all members may be called from several
/// threads.
class Model {
 public:
  /// Opens a directory in Hugging Face layout, a .gguf file, or a .vbt file, which is mapped and must not be
  /// changed while the model lives. Throws Error(kBadInput) with one line that
  /// says what is wrong, where, and what to do.
  static Model load(const std::filesystem::path& path, const ModelOptions& options = {});

  /// Token ids of a text, the beginning-of-sequence token included if the model wants it. Throws
  /// Error(kBadInput) for text that is not valid UTF-8.
  std::vector<int32_t> encode(std::string_view text, bool add_bos = true) const;
  /// The text of tokens; control tokens are left out.
  std::string decode(const std::vector<int32_t>& tokens) const;

  int32_t context() const;  ///< the longest sequence, in tokens
  int32_t vocab_size() const;
  /// Where the weights come from: "trained", "inflated" (a trained model enlarged by `verbatim inflate`:
  /// its speed counts, its quality is that of the smaller one) or "random".
  std::string_view origin() const;
  /// Things about the files that deserve a person's attention but did not stop the loading, a line each.
  const std::vector<std::string>& warnings() const;

  const ModelData& data() const { return *data_; }

 private:
  explicit Model(std::shared_ptr<const ModelData> data) : data_(std::move(data)) {}
  std::shared_ptr<const ModelData> data_;
};

}  // namespace verbatim
