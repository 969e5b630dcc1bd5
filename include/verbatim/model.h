#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "verbatim/recipe.h"

namespace verbatim {

struct ModelData;

/// How a model is loaded. Without a recipe, recipes or formats it is loaded for plain decoding: a checkpoint
/// in its own type, a .vbt file with all that it holds.
struct ModelOptions {
  /// The recipe to load the model for: the name of a built-in recipe or a path that ends in ".toml", as
  /// load_recipe() takes it. The weights are packed into the formats that the recipe needs of a model of this
  /// type. Empty: none.
  std::string recipe = {};
  /// Further recipes to load the model for.
  std::vector<Recipe> recipes = {};
  /// Whether this is the other model that the recipes draft with, not the one that verifies.
  bool drafts = false;
  /// The formats to pack the weights into, by name ("bf16", "mxbf16", ...), whatever the recipes need; "full"
  /// is the model's own type. A .vbt file is packed already: it must hold every format that is named here,
  /// and any lossless format for "full". Empty: the recipes decide.
  std::vector<std::string> formats = {};
  /// A .safetensors file with the loss's sensitivity to each weight, for `squeeze3` and `squeeze4`; or empty.
  std::filesystem::path sensitivities = {};
  /// `squeeze3` and `squeeze4` without the sparse part.
  bool dense_only = false;
  /// For comparisons: rounds the weights of every output column to so many bits, uniformly, before they are
  /// packed (formats/round_to_nearest.h); 0 leaves them as they are.
  int32_t round_to_bits = 0;
  /// Threads to pack with; 0 takes every processor this process may run on.
  int32_t threads = 0;
  /// Called now and then during loading with the fraction done, from 0 to 1.
  std::function<void(double)> progress = {};
};

/// A model that is loaded and packed. Copies share the weights; all members may be called from several
/// threads.
class Model {
 public:
  /// Opens a directory in Hugging Face layout, a .gguf file, or a .vbt file, which is mapped and must not be
  /// changed while the model lives. Throws Error(kBadInput) with one line that says what is wrong, where, and
  /// what to do, and Error(kUsage) when a recipe runs models of another quantization scheme.
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
