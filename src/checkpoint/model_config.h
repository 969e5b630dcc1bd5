#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// The families of decoders that the engine knows. They share one implementation; the config states their
/// differences.
enum class Architecture {
  kLlama,
  kMistral,
  kQwen2,
  kQwen3,
  kSmolLm3,
  kGranite,
  kOlmo2,
  kPhi3,
  kGemma2,
  kGemma3,
  kGlm4,
  kMixtral,
  kQwen3Moe,
  kGptOss,
  kGpt2,
  kStarcoder2,
  kOpt
};

/// The origin of a model's weights, which decides how measurements with the model must be read.
enum class Origin {
  kTrained,   ///< a trained model, or one whose files say nothing else
  kInflated,  ///< a trained model that was enlarged (verbatim/inflate.h): its speed is meaningful, its
              ///< quality is that of the smaller model
  kRandom,    ///< random weights: neither its text nor its acceptance of drafts is meaningful
};

/// The scheme by which `verbatim quantize` prepared the weights for four bits
/// (prepare/quantize_model.h). For kAtom and kQuarot the decoder must also change the inputs of some
/// matrices.
enum class QuantizationScheme {
  kNone,    ///< not prepared: the weights are the model's own
  kRtn,     ///< not prepared, and rounded to nearest
  kAwq,     ///< weights of important inputs are scaled up, and the weights that make these inputs scaled down
  kGptq,    ///< not prepared, and rounded so that weights make up for the errors of others
  kAtom,    ///< inputs are reordered, with outliers last and in eight bits
  kQuarot,  ///< the residual stream is rotated; heads and the input of `down` get a Hadamard transform
};

/// The RMS norm that queries and keys get before they are rotated.
enum class HeadNorm {
  kNone,
  kPerHead,  ///< each head by itself; all heads share the head_dim weights
  kWhole,    ///< all heads of a row together, with a weight for each of their elements
};

/// The settings of YaRN (Peng et al., arXiv:2309.00071) besides a factor and the original context.
struct YarnScaling {
  float attention_factor = 1.0f;  ///< the factor on the cosines and sines, for queries and keys
  float beta_fast = 32.0f;  ///< pairs with at least this many turns in the original context are not scaled
  float beta_slow = 1.0f;   ///< pairs with at most this many turns in the original context are interpolated
  bool truncate = true;     ///< the ramp between these two bounds begins and ends at whole pairs
  friend bool operator==(const YarnScaling&, const YarnScaling&) = default;
};

/// The settings of LongRoPE (Ding et al., arXiv:2402.13753): divisors of the frequencies of the rotated
/// pairs, one list for contexts up to the original one, one for longer ones.
struct LongRope {
  std::vector<float> short_factors;
  std::vector<float> long_factors;
  float attention_factor = 1.0f;  ///< the factor on the cosines and sines, for queries and keys
  friend bool operator==(const LongRope&, const LongRope&) = default;
};

/// How positions are scaled, so that a context longer than the trained one can be used.
struct RopeScaling {
  enum class Kind { kNone, kLinear, kLlama3, kDynamic, kYarn, kLongRope };
  Kind kind = Kind::kNone;
  float factor = 1.0f;
  // Llama 3 only:
  float low_frequency_factor = 1.0f;
  float high_frequency_factor = 4.0f;
  /// The length of the context before scaling; for Llama 3, dynamic, YaRN and LongRoPE only.
  int32_t original_context = 8192;
  YarnScaling yarn = {};    ///< for YaRN only
  LongRope long_rope = {};  ///< for LongRoPE only
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

/// The place of the norms of a layer's two parts, attention and the feed-forward part.
enum class BlockNorms {
  kBefore,  ///< on what a part reads of the residual stream
  kAfter,   ///< on what a part adds to it
  kBoth,
};

/// The function on the gate of the feed-forward part, or on the up matrix's outputs where there is no gate.
enum class Activation {
  kSilu,      ///< x / (1 + e^-x)
  kGeluTanh,  ///< GELU as its makers approximate it: x / (1 + e^(-2 √(2/π) (x + 0.044715 x³)))
  /// The activation of gpt-oss: x / (1 + e^(-1.702 x)) of x up to a limit, and it multiplies 1 + up, with up
  /// kept within that limit on both sides.
  kClampedSilu,
  kRelu,  ///< x, or 0 below 0; where there is no gate alone
};

/// Soft caps: cap · tanh(x / cap) in place of x. 0: none.
struct SoftCaps {
  float scores = 0.0f;  ///< on the scores of attention, after their factor
  float logits = 0.0f;
  friend bool operator==(const SoftCaps&, const SoftCaps&) = default;
};

/// The factors that some families put on numbers of a pass.
struct Scales {
  float embedding = 1.0f;  ///< on the rows of the embedding
  float residual = 1.0f;   ///< on what attention and the feed-forward part add to the residual stream
  float attention = 0.0f;  ///< on the scores of attention; 0: one over the square root of the head's size
  float logits = 1.0f;     ///< on the logits
  friend bool operator==(const Scales&, const Scales&) = default;
};

/// The experts of a layer whose feed-forward part is a mixture of experts: of its several gate, up and down
/// matrices a router chooses some for every row, and adds up what they give.
struct Experts {
  int32_t count = 0;              ///< the number of experts of a layer; 0: no layer has experts
  int32_t used = 0;               ///< the number of them that a row goes through
  int32_t intermediate_size = 0;  ///< of each expert
  /// Whether the weights of the experts that a row goes through are divided by their sum.
  bool normalized = true;
  bool biases = false;  ///< whether the router and the matrices of experts have biases
  friend bool operator==(const Experts&, const Experts&) = default;
};

/// The sizes and settings of a decoder-only transformer, whatever file they come from.
struct ModelConfig {
  Architecture architecture = Architecture::kLlama;
  int32_t hidden_size = 0;
  int32_t intermediate_size = 0;
  int32_t layers = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t vocab_size = 0;
  /// The length of the longest sequence, in tokens: the one that the model was trained for
  /// (max_position_embeddings), or with scaled positions a longer one (checkpoint/rope_scaling.h).
  int32_t context = 0;
  float rms_norm_epsilon = 1e-5f;
  float rope_theta = 10000.0f;
  /// The theta of the layers with a window, whose positions are not scaled then; 0: as in the other layers.
  float window_rope_theta = 0.0f;
  RopeScaling rope_scaling;
  /// The number of elements of a head that are rotated, its first ones; 0: all.
  int32_t rotary_dim = 0;
  /// The divisors of the frequencies of the rotated pairs, one for each pair, or none. GGUF files state
  /// the scaling of Llama 3 in this way ("rope_freqs.weight").
  std::vector<float> rope_frequency_factors;
  /// Whether the query and key matrices are stored so that neighbouring elements of a head rotate as a pair
  /// (GLM-4's layout, and GGUF's of Llama). Otherwise elements of the two halves of what is rotated do (the
  /// layout of most models of Hugging Face).
  bool rope_interleaved = false;
  bool fused_qkv = false;      ///< the checkpoint stores queries, keys and values as one matrix
  bool fused_gate_up = false;  ///< the checkpoint stores gate and up as one matrix
  int32_t sliding_window =
      0;  ///< the number of positions that a position sees, itself included; 0: all up to itself
  /// The layers, ascending, whose positions see all up to themselves although there is a window.
  std::vector<int32_t> windowless_layers;
  /// The layers, ascending, that do not rotate queries and keys.
  std::vector<int32_t> unrotated_layers;
  bool tied_embeddings = false;  ///< the output matrix is the embedding
  bool qkv_bias = false;
  bool output_bias = false;  ///< whether attention's output matrix has a bias
  /// Whether each query head has a sink: a score that takes part in the softmax beside those of positions and
  /// has no value.
  bool head_sinks = false;
  HeadNorm head_norm = HeadNorm::kNone;
  BlockNorms block_norms = BlockNorms::kBefore;
  /// Whether the norms are LayerNorms, which take the mean away, divide by the standard deviation and have
  /// biases, and not RMS norms. Their epsilon is rms_norm_epsilon, too.
  bool layer_norm = false;
  /// Whether the checkpoint stores 1 less than the weights of all norms.
  bool norms_less_one = false;
  Activation activation = Activation::kSilu;
  float activation_limit = 0.0f;  ///< for kClampedSilu: the limit
  /// Whether the feed-forward part has an up matrix alone, whose outputs the activation takes, and no gate.
  bool plain_mlp = false;
  bool mlp_bias = false;  ///< whether the matrices of the feed-forward part have biases
  /// Whether a learned vector for each position of the context is added to the rows of the embedding.
  bool learned_positions = false;
  Experts experts;
  /// The layers, ascending, that have no experts although other layers do.
  std::vector<int32_t> dense_layers;
  Scales scales;
  SoftCaps soft_caps;
  std::optional<int32_t> bos_token;
  std::vector<int32_t> eos_tokens;  ///< generation ends with any of these
  Origin origin = Origin::kTrained;
  QuantizationScheme quantization = QuantizationScheme::kNone;
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// The number of elements of a head that are rotated.
inline int32_t rotated_elements(const ModelConfig& config) {
  return config.rotary_dim > 0 ? config.rotary_dim : config.head_dim;
}

/// Whether the feed-forward part of a layer is a mixture of experts.
bool has_experts(const ModelConfig& config, int64_t layer);

/// Checks a config. Throws Error(kBadInput), naming `where`, unless every size is positive, sensible and
/// consistent with the others (heads divisible by kv_heads, an even head_dim, nothing absurdly large).
void validate(const ModelConfig& config, const std::string& where);
/// Checks the number of layers as validate() does, for readers that make lists with entries of layers.
void validate_layers(int32_t layers, const std::string& where);
/// Gives all layers learned positions in place of rotation. Throws as validate_layers() does, since it makes
/// a list of the layers.
void set_learned_positions(ModelConfig& config, const std::string& where);

/// All architectures.
inline constexpr Architecture kArchitectures[] = {
    Architecture::kLlama,    Architecture::kMistral, Architecture::kQwen2, Architecture::kQwen3,
    Architecture::kSmolLm3,  Architecture::kGranite, Architecture::kOlmo2, Architecture::kPhi3,
    Architecture::kGemma2,   Architecture::kGemma3,  Architecture::kGlm4,  Architecture::kMixtral,
    Architecture::kQwen3Moe, Architecture::kGptOss,  Architecture::kGpt2,  Architecture::kStarcoder2,
    Architecture::kOpt};
/// The name of an architecture, as model_type states it: "llama", "mistral", "qwen2", "qwen3", "smollm3",
/// "granite", "olmo2", "phi3", "gemma2", "gemma3_text", "glm4", "mixtral", "qwen3_moe", "gpt_oss", "gpt2",
/// "starcoder2" or "opt".
std::string architecture_name(Architecture architecture);

/// Whether files in Hugging Face layout have `rope_interleaved` matrices.
inline bool hugging_face_interleaves(Architecture architecture) {
  return architecture == Architecture::kGlm4;
}

/// All kinds of norms of queries and keys.
inline constexpr HeadNorm kHeadNorms[] = {HeadNorm::kNone, HeadNorm::kPerHead, HeadNorm::kWhole};
/// "none", "per head" or "whole".
std::string_view head_norm_name(HeadNorm norm);

/// All places of norms.
inline constexpr BlockNorms kBlockNorms[] = {BlockNorms::kBefore, BlockNorms::kAfter, BlockNorms::kBoth};
/// "before", "after" or "both".
std::string_view block_norms_name(BlockNorms norms);

/// All activations.
inline constexpr Activation kActivations[] = {Activation::kSilu, Activation::kGeluTanh,
                                              Activation::kClampedSilu, Activation::kRelu};
/// "silu", "gelu_tanh", "clamped_silu" or "relu".
std::string_view activation_name(Activation activation);

/// All origins.
inline constexpr Origin kOrigins[] = {Origin::kTrained, Origin::kInflated, Origin::kRandom};
/// "trained", "inflated" or "random".
std::string_view origin_name(Origin origin);

/// All schemes.
inline constexpr QuantizationScheme kQuantizationSchemes[] = {
    QuantizationScheme::kNone, QuantizationScheme::kRtn,  QuantizationScheme::kAwq,
    QuantizationScheme::kGptq, QuantizationScheme::kAtom, QuantizationScheme::kQuarot};
/// "none", "rtn", "awq", "gptq", "atom" or "quarot".
std::string_view scheme_name(QuantizationScheme scheme);
/// The scheme with a name, the inverse of scheme_name(); nothing for any other name.
std::optional<QuantizationScheme> parse_scheme(std::string_view name);

}  // namespace verbatim
