#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// The families of decoders that the engine knows. They share one implementation; the config says what
/// differs.
enum class Architecture { kLlama, kMistral, kQwen2 };

/// Where the weights come from. What is measured with them means different things.
enum class Origin {
  kTrained,   ///< as far as the files say
  kInflated,  ///< a trained model that was enlarged (checkpoint/inflate.h): its speed counts, its quality is
              ///< that of the smaller one
  kRandom,    ///< never trained: no text, no acceptance of drafts means anything
};

/// How `verbatim quantize` prepared the weights for four bits (quantization/quantize_model.h). Atom's and
/// QuaRot's want something done to the inputs of some matrices, too.
enum class QuantizationScheme {
  kNone,    ///< the weights are the model's own
  kRtn,     ///< rounded to nearest as they are
  kAwq,     ///< inputs that matter most are scaled up; what makes them scales them down
  kAtom,    ///< inputs in an order of their own, the most outlying last and in eight bits
  kQuarot,  ///< rotated; heads and the inputs of `down` meet a Hadamard transform
};

/// What YaRN (Peng et al., arXiv:2309.00071) needs besides a factor and the original context.
struct YarnScaling {
  float attention_factor = 1.0f;  ///< multiplies the cosines and sines, of queries as of keys
  float beta_fast = 32.0f;        ///< pairs that turn at least so often in the original context are kept
  float beta_slow = 1.0f;         ///< pairs that turn at most so often are interpolated
  bool truncate = true;  ///< the bounds of the ramp between the two are rounded outwards to whole pairs
  friend bool operator==(const YarnScaling&, const YarnScaling&) = default;
};

/// How positions beyond the trained context are squeezed into it.
struct RopeScaling {
  enum class Kind { kNone, kLinear, kLlama3, kDynamic, kYarn };
  Kind kind = Kind::kNone;
  float factor = 1.0f;
  // Llama 3 only:
  float low_frequency_factor = 1.0f;
  float high_frequency_factor = 4.0f;
  /// The context before scaling. Llama 3, dynamic and YaRN only.
  int32_t original_context = 8192;
  YarnScaling yarn = {};  ///< YaRN only
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

/// The shape of a decoder-only transformer, from whatever file described it.
struct ModelConfig {
  Architecture architecture = Architecture::kLlama;
  int32_t hidden_size = 0;
  int32_t intermediate_size = 0;
  int32_t layers = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t vocab_size = 0;
  /// The longest sequence: what the model was trained for (max_position_embeddings), or what the scaling of
  /// its positions makes of that (checkpoint/rope_scaling.h).
  int32_t context = 0;
  float rms_norm_epsilon = 1e-5f;
  float rope_theta = 10000.0f;
  RopeScaling rope_scaling;
  /// A factor per rotated pair (head_dim / 2 of them) that divides its frequency; empty when there is none.
  /// GGUF files state the Llama 3 scaling this way ("rope_freqs.weight").
  std::vector<float> rope_frequency_factors;
  /// Rows of the query and key matrices are stored so that neighbouring pairs rotate (GGUF's Llama layout)
  /// instead of the two halves of a head (Hugging Face's layout).
  bool rope_interleaved = false;
  int32_t sliding_window =
      0;  ///< a position sees itself and the sliding_window - 1 before it; 0: all before it
  bool tied_embeddings = false;  ///< the output matrix is the embedding
  bool qkv_bias = false;
  std::optional<int32_t> bos_token;
  std::vector<int32_t> eos_tokens;  ///< generation ends with any of these
  Origin origin = Origin::kTrained;
  QuantizationScheme quantization = QuantizationScheme::kNone;
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// Throws Error(kBadInput), naming `where`, unless every size is positive, sensible and consistent with the
/// others (heads divisible by kv_heads, an even head_dim, nothing absurdly large).
void validate(const ModelConfig& config, const std::string& where);

/// Every architecture.
inline constexpr Architecture kArchitectures[] = {Architecture::kLlama, Architecture::kMistral,
                                                  Architecture::kQwen2};
/// "llama", "mistral" or "qwen2".
std::string architecture_name(Architecture architecture);

/// Every origin.
inline constexpr Origin kOrigins[] = {Origin::kTrained, Origin::kInflated, Origin::kRandom};
/// "trained", "inflated" or "random".
std::string_view origin_name(Origin origin);

/// Every scheme.
inline constexpr QuantizationScheme kQuantizationSchemes[] = {
    QuantizationScheme::kNone, QuantizationScheme::kRtn, QuantizationScheme::kAwq, QuantizationScheme::kAtom,
    QuantizationScheme::kQuarot};
/// "none", "rtn", "awq", "atom" or "quarot".
std::string_view scheme_name(QuantizationScheme scheme);
/// The inverse, or nothing.
std::optional<QuantizationScheme> parse_scheme(std::string_view name);

}  // namespace verbatim
