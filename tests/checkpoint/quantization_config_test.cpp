#include "checkpoint/quantization_config.h"

#include <gtest/gtest.h>

#include "checkpoint/bad_input.h"

namespace verbatim {
namespace quantization_config_test {
namespace {

using nlohmann::json;
using Method = QuantizationConfig::Method;
using Strategy = QuantizationConfig::Strategy;

const json kFp8 = {{"quant_method", "fp8"},
                   {"fmt", "e4m3"},
                   {"activation_scheme", "dynamic"},
                   {"weight_block_size", {128, 64}},
                   {"modules_to_not_convert", {"lm_head"}}};
const json kGptq = {{"quant_method", "gptq"}, {"bits", 4},
                    {"group_size", 128},      {"sym", true},
                    {"desc_act", false},      {"damp_percent", 0.01},
                    {"dataset", nullptr},     {"use_exllama", true},
                    {"true_sequential", true}};
const json kAwq = {
    {"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}, {"version", "gemm"}, {"zero_point", true}};
const json kPacked = {{"quant_method", "compressed-tensors"},
                      {"format", "pack-quantized"},
                      {"ignore", {"lm_head", "re:.*gate$"}},
                      {"quantization_status", "compressed"},
                      {"kv_cache_scheme", nullptr},
                      {"config_groups",
                       {{"group_0",
                         {{"targets", {"Linear"}},
                          {"input_activations", nullptr},
                          {"output_activations", nullptr},
                          {"weights",
                           {{"num_bits", 4},
                            {"type", "int"},
                            {"symmetric", false},
                            {"strategy", "group"},
                            {"group_size", 32}}}}}}}};

QuantizationConfig parse(const json& config) {
  return parse_quantization_config(config, "config.json");
}

TEST(QuantizationConfig, ReadsEveryMethod) {
  const QuantizationConfig fp8 = parse(kFp8);
  EXPECT_EQ(fp8.method, Method::kFp8);
  EXPECT_EQ(fp8.strategy, Strategy::kBlock);
  EXPECT_EQ(fp8.block_rows, 128);
  EXPECT_EQ(fp8.block_columns, 64);
  EXPECT_EQ(fp8.unquantized, std::vector<std::string>{"lm_head"});
  const QuantizationConfig gptq = parse(kGptq);
  EXPECT_EQ(gptq.method, Method::kGptq);
  EXPECT_EQ(gptq.bits, 4);
  EXPECT_EQ(gptq.group_size, 128);
  EXPECT_TRUE(gptq.symmetric);
  EXPECT_EQ(gptq.zero_offset, 1);
  const QuantizationConfig awq = parse(kAwq);
  EXPECT_EQ(awq.method, Method::kAwq);
  EXPECT_EQ(awq.zero_offset, 0);
  EXPECT_FALSE(awq.symmetric);
  const QuantizationConfig packed = parse(kPacked);
  EXPECT_EQ(packed.method, Method::kPacked);
  EXPECT_EQ(packed.group_size, 32);
  EXPECT_FALSE(packed.symmetric);
  EXPECT_EQ(packed.unquantized.size(), 2u);
}

TEST(QuantizationConfig, RefusesByNameWhatItDoesNotUnderstand) {
  const auto refused = [](json config, const char* pointer, const json& value,
                          std::initializer_list<std::string> parts) {
    config[json::json_pointer(pointer)] = value;
    test::expect_bad_input([&] { parse(config); }, parts);
  };
  refused(kFp8, "/quant_method", "bitsandbytes", {"quant_method bitsandbytes", "F16 or BF16"});
  refused(kFp8, "/fmt", "e3m4", {"fmt e3m4"});
  refused(kFp8, "/activation_scheme", "odd", {"activation_scheme odd"});
  refused(kFp8, "/weight_block_size", {128}, {"weight_block_size"});
  refused(kFp8, "/weight_block_size", {128, 0}, {"weight_block_size"});
  refused(kFp8, "/kv_cache_scheme", {{"num_bits", 8}}, {"kv_cache_scheme"});
  refused(kFp8, "/novelty", 1, {"novelty", "not understood"});
  refused(kGptq, "/bits", 2, {"bits 2", "4 or 8"});
  refused(kGptq, "/bits", 3, {"bits 3"});
  refused(kGptq, "/group_size", 0, {"group_size is 0"});
  refused(kGptq, "/checkpoint_format", "marlin", {"checkpoint_format marlin"});
  refused(kGptq, "/is_marlin_format", true, {"is_marlin_format"});
  refused(kGptq, "/dynamic", {{"+:.*", {{"bits", 8}}}}, {"dynamic"});
  refused(kGptq, "/pack_dtype", "int16", {"pack_dtype int16"});
  refused(kAwq, "/bits", 8, {"bits 8"});
  refused(kAwq, "/version", "gemv", {"version gemv", "gemm"});
  refused(kAwq, "/zero_point", false, {"zero_point false"});
  refused(kPacked, "/format", "marlin-24", {"format marlin-24"});
  refused(kPacked, "/kv_cache_scheme", {{"num_bits", 8}}, {"kv_cache_scheme"});
  refused(kPacked, "/sparsity_config", {{"format", "sparse-24-bitmask"}}, {"sparsity_config"});
  refused(kPacked, "/transform_config", {{"config_groups", 1}}, {"transform_config"});
  refused(kPacked, "/config_groups", json::object(), {"config_groups"});
  const std::string group = "/config_groups/group_0";
  refused(kPacked, (group + "/weights/num_bits").c_str(), 3, {"num_bits 3"});
  refused(kPacked, (group + "/weights/type").c_str(), "float", {"type float"});
  refused(kPacked, (group + "/weights/strategy").c_str(), "token", {"strategy token"});
  refused(kPacked, (group + "/weights/dynamic").c_str(), true, {"dynamic"});
  refused(kPacked, (group + "/weights/actorder").c_str(), "odd", {"actorder odd"});
  refused(kPacked, (group + "/output_activations").c_str(), {{"num_bits", 8}}, {"output_activations"});
  refused(kPacked, "/config_groups/group_1", {{"weights", {{"num_bits", 8}}}}, {"in different ways"});
}

}  // namespace
}  // namespace quantization_config_test
}  // namespace verbatim
