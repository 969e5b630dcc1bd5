#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verbatim/recipe.h"

namespace verbatim {

struct ModelData;
struct ModelAccess;

/// Changes to the weights that measure how good a format is. Not for use otherwise: they make a model worse.
struct QualityExperiments {
  /// The formats `squeeze3` and `squeeze4` go without their sparse part.
  bool dense_only = false;
  /// The shares of a matrix's weights in that part: the most sensitive ones, and the largest of the others.
  double sparse_sensitive = 0.0005;
  double sparse_outliers = 0.004;
  /// Whether that share of the largest is one of the whole model, as in PackOptions.
  bool outliers_across_model = false;
  /// Rounds the weights of every output column to this many bits (1 to 16), uniformly, before they are
  /// packed; 0 leaves them as they are.
  int32_t round_to_bits = 0;
  /// Gives weights the values that `squeeze3` and `squeeze4` would give them with tables for this many bits
  /// (2 to 4), sparse part and sensitivities included, before they are packed; 0 leaves them as they are. For
  /// comparisons with formats that there are not.
  int32_t squeeze_to_bits = 0;
  /// With squeeze_to_bits: the neighbouring inputs of a column that share a table; 0: all.
  int64_t squeeze_group = 0;
  /// With squeeze_to_bits: whether the values of a table lie at equal distances, whatever the sensitivities.
  bool squeeze_uniformly = false;
};

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
  /// is the model's own type, and "draft" what each matrix can draft with: where the other formats hold no
  /// draft, a copy in "mxfp4". A .vbt file is packed already: it must hold every format that is named here,
  /// any lossless format for "full", and all that it holds is loaded for "draft". Empty: the recipes decide.
  std::vector<std::string> formats = {};
  /// A .safetensors file with the loss's sensitivity to each weight, for the formats `squeeze3` and
  /// `squeeze4` of a model that is not packed yet; empty: none.
  std::filesystem::path sensitivities = {};
  QualityExperiments experiments = {};
  /// Threads to pack with; 0 takes one for every core that this process may use.
  int32_t threads = 0;
  /// Called now and then during loading with the fraction done, from 0 to 1, on the calling thread.
  std::function<void(double)> progress = {};
};

/// A model that is loaded and packed, with its vocabulary. Copies share the weights, which live as long as
/// the last copy, session or engine of the model. All members may be called from several threads.
class Model {
 public:
  /// Opens a directory in Hugging Face layout, a .gguf file, or a .vbt file, which is mapped and must not be
  /// changed while the model lives. Throws Error(kBadInput) with one line that says what is wrong, where, and
  /// what to do, and Error(kUsage) when there is no recipe of the name in ModelOptions::recipe or a recipe
  /// runs models of another quantization scheme.
  static Model load(const std::filesystem::path& path, const ModelOptions& options = {});

  /// Whether the model has a vocabulary; one without it takes and gives token ids alone.
  bool has_vocabulary() const;
  /// Token ids of a text, the beginning-of-sequence token included if `add_bos` and the model wants it.
  /// Special tokens that are written out in the text ("<|im_start|>") are recognized. Throws Error(kBadInput)
  /// for text that is not valid UTF-8, and for a model without a vocabulary.
  std::vector<int32_t> encode(std::string_view text, bool add_bos = true) const;
  /// The text of tokens; control tokens are left out. Throws Error(kBadInput) for a model without a
  /// vocabulary.
  std::string decode(const std::vector<int32_t>& tokens) const;

  /// The bytes that a token adds to a text: none for control tokens, and not always whole UTF-8 characters.
  /// Throws Error(kUsage) for a token outside the vocabulary, Error(kBadInput) for a model without one.
  std::string token_text(int32_t token) const;
  /// A token as the vocabulary spells it ("▁the", "Ġthe", "<|im_end|>"); empty for ids without an entry.
  /// Throws as token_text() does.
  std::string piece(int32_t token) const;
  /// The token that the vocabulary spells like this, or nothing. Throws Error(kBadInput) for a model without
  /// a vocabulary.
  std::optional<int32_t> find_token(std::string_view piece) const;
  /// The token that begins a sequence, or nothing if the model has none.
  std::optional<int32_t> bos_token() const;
  /// The tokens that end a sequence; generation ends with any of them.
  const std::vector<int32_t>& eos_tokens() const;

  /// The longest sequence that the model can evaluate, in tokens.
  int32_t context() const;
  /// The number of token ids: every token is at least 0 and below this.
  int32_t vocab_size() const;
  /// Where the weights come from: "trained", "inflated" (a trained model enlarged by `verbatim inflate`:
  /// its speed counts, its quality is that of the smaller one) or "random".
  std::string_view origin() const;
  /// Things about the files that deserve a person's attention but did not stop the loading, a line each.
  const std::vector<std::string>& warnings() const;

 private:
  friend struct ModelAccess;
  explicit Model(std::shared_ptr<const ModelData> data) : data_(std::move(data)) {}
  std::shared_ptr<const ModelData> data_;
};

}  // namespace verbatim
