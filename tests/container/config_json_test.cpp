#include "container/config_json.h"

#include <gtest/gtest.h>

#include "checkpoint/bad_input.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::expect_bad_input;

/// No field has the value that it has by itself, except those that go together with few others
/// (plain_config()). The bindings below name every field.
ModelConfig unusual_config() {
  ModelConfig config;
  config.architecture = Architecture::kQwen2;
  config.hidden_size = 96;
  config.intermediate_size = 200;
  config.layers = 3;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_dim = 16;
  config.vocab_size = 1000;
  config.context = 4096;
  config.rms_norm_epsilon = 1.00000013e-6f;  // a float that decimal digits must not round
  config.rope_theta = 500000.25f;
  config.window_rope_theta = 1000.5f;
  config.rope_scaling = {
      .kind = RopeScaling::Kind::kLlama3,
      .factor = 8.1f,
      .low_frequency_factor = 1.1f,
      .high_frequency_factor = 3.9f,
      .original_context = 2048,
      .yarn = {.attention_factor = 1.3f, .beta_fast = 31.5f, .beta_slow = 1.5f, .truncate = false},
      .long_rope = {
          .short_factors = {1, 2, 3, 4, 5, 6}, .long_factors = {2, 3, 4, 5, 6, 7}, .attention_factor = 1.2f}};
  config.rotary_dim = 12;
  config.rope_frequency_factors = {1.0f, 1.1f, 1.2f, 1.3f, 1.4f, 1.5f};
  config.rope_interleaved = true;
  config.fused_qkv = true;
  config.fused_gate_up = true;
  config.sliding_window = 77;
  config.windowless_layers = {0, 2};
  config.unrotated_layers = {1};
  config.tied_embeddings = true;
  config.qkv_bias = true;
  config.head_norm = HeadNorm::kPerHead;
  config.block_norms = BlockNorms::kAfter;
  config.norms_less_one = true;
  config.activation = Activation::kGeluTanh;
  config.activation_limit = 7.5f;
  config.output_bias = true;
  config.head_sinks = true;
  config.mlp_bias = true;
  config.learned_positions = true;
  config.experts = {.count = 8, .used = 3, .intermediate_size = 72, .normalized = false, .biases = true};
  config.dense_layers = {1, 2};
  config.soft_caps = {.scores = 50.0f, .logits = 30.0f};
  config.scales = {.embedding = 12.0f, .residual = 0.22f, .attention = 0.015625f, .logits = 0.125f};
  config.bos_token = 7;
  config.eos_tokens = {8, 9};
  config.origin = Origin::kInflated;
  config.quantization = QuantizationScheme::kAwq;
  return config;
}

/// A model with LayerNorms and a feed-forward part without a gate.
ModelConfig plain_config() {
  ModelConfig config = unusual_config();
  config.architecture = Architecture::kGpt2;
  config.head_norm = HeadNorm::kNone;
  config.block_norms = BlockNorms::kBefore;
  config.norms_less_one = false;
  config.fused_gate_up = false;
  config.experts = {};
  config.dense_layers = {};
  config.activation = Activation::kRelu;
  config.layer_norm = true;
  config.plain_mlp = true;
  return config;
}

/// The JSON as a file would hold it.
json stored(const ModelConfig& config) {
  return json::parse(config_json(config).dump());
}

TEST(ConfigJson, HoldsEveryField) {
  const ModelConfig config = unusual_config();
  // Whoever adds a field has to add it here, to unusual_config() and to the serialisation.
  const auto& [a, b, c, d, e, f, g, h, i, j, k, kk, l, m, n, o, p, q, r, s, z, zz, zy, zx, zw, zv, zu, zt, zs,
               zr, zq, zp, zo, zn, zm, zl, zk, zj, zi, zh, zg, zf] = config;
  const ModelConfig usual;
  const auto& [a0, b0, c0, d0, e0, f0, g0, h0, i0, j0, k0, kk0, l0, m0, n0, o0, p0, q0, r0, s0, z0, zz0, zy0,
               zx0, zw0, zv0, zu0, zt0, zs0, zr0, zq0, zp0, zo0, zn0, zm0, zl0, zk0, zj0, zi0, zh0, zg0,
               zf0] = usual;
  EXPECT_TRUE(a != a0 && b != b0 && c != c0 && d != d0 && e != e0 && f != f0 && g != g0 && h != h0 &&
              i != i0 && j != j0 && k != k0 && kk != kk0 && l != l0 && m != m0 && n != n0 && o != o0 &&
              p != p0 && q != q0 && r != r0 && s != s0 && z != z0 && zz != zz0 && zy != zy0 && zx != zx0 &&
              zw != zw0 && zv != zv0 && zu != zu0 && zs != zs0 && zr != zr0 && zq != zq0 && zo != zo0 &&
              zn != zn0 && zm != zm0 && zl != zl0 && zk != zk0 && zj != zj0 && zi != zi0 && zh != zh0 &&
              zg != zg0 && zf != zf0);
  EXPECT_TRUE(zt == zt0 && zp == zp0);  // of plain_config() alone
  const auto& [t, u, v, w, x, y, yy] = l;
  const auto& [t0, u0, v0, w0, x0, y0, yy0] = l0;
  EXPECT_TRUE(t != t0 && u != u0 && v != v0 && w != w0 && x != x0);
  const auto& [y1, y2, y3, y4] = y;
  const auto& [z1, z2, z3, z4] = y0;
  EXPECT_TRUE(y1 != z1 && y2 != z2 && y3 != z3 && y4 != z4);
  const auto& [x1, x2, x3] = yy;
  const auto& [w1, w2, w3] = yy0;
  EXPECT_TRUE(x1 != w1 && x2 != w2 && x3 != w3);
  EXPECT_EQ(parse_config(stored(config), "x"), config);
  const ModelConfig plain = plain_config();
  EXPECT_TRUE(plain.layer_norm && plain.plain_mlp);
  EXPECT_EQ(parse_config(stored(plain), "x"), plain);
  for (const char* name : {"layer_norm", "plain_mlp", "mlp_bias", "learned_positions"}) {
    EXPECT_TRUE(stored(plain).contains(name));
    EXPECT_FALSE(stored(usual).contains(name));
  }
}

TEST(ConfigJson, RefusesPlainPartsBesideWhatTheyDoNotGoWith) {
  const auto refused = [](auto&& change, const std::string& reason) {
    ModelConfig config = plain_config();
    change(config);
    expect_bad_input([&] { parse_config(stored(config), "where"); }, {"where", reason});
  };
  refused([](ModelConfig& c) { c.block_norms = BlockNorms::kBoth; }, "LayerNorms");
  refused([](ModelConfig& c) { c.head_norm = HeadNorm::kWhole; }, "LayerNorms");
  refused([](ModelConfig& c) { c.quantization = QuantizationScheme::kQuarot; }, "quarot");
  refused([](ModelConfig& c) { c.fused_gate_up = true; }, "without a gate");
  refused([](ModelConfig& c) { c.experts = {.count = 4, .used = 2, .intermediate_size = 8}; },
          "without a gate");
  refused([](ModelConfig& c) { c.activation = Activation::kSilu; }, "activation silu without a gate");
  refused([](ModelConfig& c) { c.plain_mlp = false; }, "activation relu on a gate");
  refused([](ModelConfig& c) { c.context = 1 << 18; }, "learned positions");
}

TEST(ConfigJson, HoldsWhatIsAbsent) {
  ModelConfig config = unusual_config();
  config.bos_token = std::nullopt;
  config.eos_tokens.clear();
  config.rope_frequency_factors.clear();
  for (const RopeScaling::Kind kind :
       {RopeScaling::Kind::kNone, RopeScaling::Kind::kLinear, RopeScaling::Kind::kLlama3,
        RopeScaling::Kind::kDynamic, RopeScaling::Kind::kYarn, RopeScaling::Kind::kLongRope}) {
    config.rope_scaling.kind = kind;
    for (const Architecture architecture : kArchitectures) {
      config.architecture = architecture;
      EXPECT_EQ(parse_config(stored(config), "x"), config);
    }
  }
}

TEST(ConfigJson, WantsEveryFieldInItsTypeAndNoOther) {
  const json whole = stored(unusual_config());
  for (const auto& [name, value] : whole.items()) {
    json changed = whole;
    changed.erase(name);
    const bool optional = name == "origin" || name == "quantization" || name == "head_norm" ||
                          name == "block_norms" || name == "scales" || name == "rotary_dim" ||
                          name == "window_rope_theta" || name == "norms_less_one" || name == "activation" ||
                          name == "soft_caps" || name == "activation_limit" || name == "output_bias" ||
                          name == "mlp_bias" || name == "learned_positions" || name == "head_sinks" ||
                          name.starts_with("fused_") || name.ends_with("_layers");
    if (!optional) expect_bad_input([&] { parse_config(changed, "where"); }, {"where", name});
    changed[name] = json::object({{"a", 1}});
    expect_bad_input([&] { parse_config(changed, "where"); }, {"where"});
  }
  for (const auto& [name, value] : whole["rope_scaling"].items()) {
    json changed = whole;
    changed["rope_scaling"].erase(name);
    if (name != "yarn" && name != "long_rope")
      expect_bad_input([&] { parse_config(changed, "where"); }, {"where", name});
  }
  for (const auto& [name, value] : whole["rope_scaling"]["yarn"].items()) {
    json changed = whole;
    changed["rope_scaling"]["yarn"].erase(name);
    expect_bad_input([&] { parse_config(changed, "where"); }, {"where", name});
  }
  for (const auto& [name, value] : whole["rope_scaling"]["long_rope"].items()) {
    json changed = whole;
    changed["rope_scaling"]["long_rope"].erase(name);
    expect_bad_input([&] { parse_config(changed, "where"); }, {"where", name});
  }
  json more = whole;
  more["more_experts"] = 8;
  expect_bad_input([&] { parse_config(more, "where"); }, {"newer"});
  more = whole;
  more["scales"]["beta"] = 1;
  expect_bad_input([&] { parse_config(more, "where"); }, {"newer"});
  more = whole;
  more["rope_scaling"]["beta"] = 1;
  expect_bad_input([&] { parse_config(more, "where"); }, {"newer"});
  more = whole;
  more["rope_scaling"]["yarn"]["beta"] = 1;
  expect_bad_input([&] { parse_config(more, "where"); }, {"newer"});
}

TEST(ConfigJson, SpeaksOfNormsOfHeadsOnlyWhereThereAreSome) {
  ModelConfig config = unusual_config();
  for (const HeadNorm norm : kHeadNorms) {
    config.head_norm = norm;
    EXPECT_EQ(stored(config).contains("head_norm"), norm != HeadNorm::kNone);
    EXPECT_EQ(parse_config(stored(config), "x"), config);
  }
  for (const BlockNorms norms : kBlockNorms) {
    config.block_norms = norms;
    EXPECT_EQ(stored(config).contains("block_norms"), norms != BlockNorms::kBefore);
    EXPECT_EQ(parse_config(stored(config), "x"), config);
  }
  json changed = stored(config);
  changed["block_norms"] = "within";
  expect_bad_input([&] { parse_config(changed, "where"); }, {"where", "within"});
  changed = stored(config);
  changed["head_norm"] = "half";
  expect_bad_input([&] { parse_config(changed, "where"); }, {"where", "half"});
}

TEST(ConfigJson, SpeaksOfTheOriginOnlyWhereItIsUnusual) {
  ModelConfig config = unusual_config();
  config.origin = Origin::kTrained;
  EXPECT_FALSE(stored(config).contains("origin"));
  for (const Origin origin : kOrigins) {
    config.origin = origin;
    EXPECT_EQ(parse_config(stored(config), "x"), config);
  }
  json changed = stored(config);
  changed["origin"] = "found";
  expect_bad_input([&] { parse_config(changed, "where"); }, {"where", "found"});
}

// Files from before there was YaRN have no such field and stay what they were.
TEST(ConfigJson, SpeaksOfYarnOnlyWhereItIsUnusual) {
  ModelConfig config = unusual_config();
  config.rope_scaling.yarn = {};
  config.rope_scaling.long_rope = {};
  EXPECT_FALSE(stored(config)["rope_scaling"].contains("yarn"));
  EXPECT_FALSE(stored(config)["rope_scaling"].contains("long_rope"));
  EXPECT_EQ(parse_config(stored(config), "x"), config);
}

TEST(ConfigJson, IsValidated) {
  json changed = stored(unusual_config());
  changed["heads"] = 5;
  expect_bad_input([&] { parse_config(changed, "where"); }, {"where", "5 heads"});
  changed["heads"] = 1e30;
  expect_bad_input([&] { parse_config(changed, "where"); }, {"heads"});
  changed = stored(unusual_config());
  changed["scales"]["residual"] = -1;
  expect_bad_input([&] { parse_config(changed, "where"); }, {"where", "factor on what layers add"});
  for (const json& layers : {json{1, 0}, json{3}, json{-1}, json{0, 0}}) {
    changed = stored(unusual_config());
    changed["unrotated_layers"] = layers;
    expect_bad_input([&] { parse_config(changed, "where"); }, {"where", "layers without rotation"});
  }
  changed = stored(unusual_config());
  changed["architecture"] = "mamba";
  expect_bad_input([&] { parse_config(changed, "where"); }, {"mamba"});
  changed = stored(unusual_config());
  changed["rope_frequency_factors"][3] = 1e300;
  expect_bad_input([&] { parse_config(changed, "where"); }, {"rope_frequency_factors"});
}

}  // namespace
}  // namespace verbatim
