#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "accelerator/decode.h"
#include "accelerator/paper/equations.h"
#include "accelerator/workload/shape.h"
#include "accelerator/workload/steps.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim::accelerator {
namespace workload_test {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    return error.what();
  }
  return "nothing was refused";
}
std::string config_refusal(const std::string& json) {
  return refusal([&] { parse_config(json, "config.json"); });
}
std::string steps_refusal(const std::string& text) {
  return refusal([&] { parse_steps(text, "trace"); });
}

constexpr const char* kLlama =
    R"("model_type":"llama","hidden_size":64,"num_hidden_layers":2,"vocab_size":100,"intermediate_size":96)";

std::string config_with(const std::string& fields) {
  return std::string("{") + kLlama + "," + fields + "}";
}

TEST(Shapes, HaveTheWeightsOfThePapersModels) {
  const auto billions = [](const char* name) {
    return static_cast<double>(load_shape(name).weights_of_row()) * 1e-9;
  };
  // Without the embedding, of which a row reads one line.
  EXPECT_NEAR(billions("vicuna-7b"), 6.607, 0.001);
  EXPECT_NEAR(billions("llama2-7b"), 6.607, 0.001);
  EXPECT_NEAR(billions("llama3.1-8b"), 7.505, 0.001);
  EXPECT_NEAR(billions("llama3.2-3b"), 3.213, 0.001);
  EXPECT_NEAR(billions("llama2-13b"), 12.852, 0.001);
}

TEST(Shapes, ComeFromAConfiguration) {
  const Shape own = load_shape(test::default_model());
  EXPECT_EQ(own, load_shape(test::default_model() / "config.json"));
  EXPECT_GT(own.weights_of_row(), 10'000'000);
  const Shape shape = parse_config(config_with(R"("num_attention_heads":4,"num_key_value_heads":2)"), "c");
  EXPECT_EQ(shape.head_size, 16);
  EXPECT_EQ(shape.kv_size(), 32);
  EXPECT_EQ(shape.weights_of_row(), 2 * (64 * (64 + 64 + 32 + 32) + 3 * 64 * 96) + 6400);
  const Shape gpt = parse_config(
      R"({"model_type":"gpt2","n_embd":64,"n_layer":2,"n_head":4,"vocab_size":100,"n_inner":null})", "c");
  EXPECT_EQ(gpt.intermediate, 256);
  EXPECT_FALSE(gpt.gated);
  const Shape mixture = parse_config(
      config_with(R"("num_attention_heads":4,"num_local_experts":8,"num_experts_per_tok":2)"), "c");
  EXPECT_EQ(mixture.weights_of_row(), 2 * (64 * 256 + 2 * 3 * 64 * 96 + 8 * 64) + 6400);
}

TEST(Shapes, RefuseOddConfigurations) {
  EXPECT_THAT(config_refusal("[]"), HasSubstr("config.json is needed"));
  EXPECT_THAT(config_refusal("{"), HasSubstr("config.json is needed"));
  EXPECT_THAT(config_refusal("{}"), HasSubstr("hidden_size is missing"));
  EXPECT_THAT(config_refusal(config_with(R"("num_attention_heads":0)")), HasSubstr("at least 1"));
  EXPECT_THAT(config_refusal(config_with(R"("num_attention_heads":"4")")), HasSubstr("whole number"));
  EXPECT_THAT(config_refusal(config_with(R"("num_attention_heads":5)")), HasSubstr("no multiple of 5 heads"));
  EXPECT_THAT(config_refusal(config_with(R"("num_attention_heads":18446744073709551615)")),
              HasSubstr("num_attention_heads must be"));
  EXPECT_THAT(config_refusal(config_with(R"("num_attention_heads":4,"num_key_value_heads":3)")),
              HasSubstr("4 heads cannot share 3"));
  EXPECT_THAT(
      config_refusal(config_with(R"("num_attention_heads":4,"num_local_experts":2,"num_experts_per_tok":4)")),
      HasSubstr("uses 4 experts, and there are 2"));
  EXPECT_THAT(refusal([] { load_shape("llama9"); }), HasSubstr("vicuna-7b"));
}

TEST(Shapes, RefuseSizesAndPartsThatAreNotSimulated) {
  const auto with = [](const std::string& more) {
    return config_refusal(config_with(R"("num_attention_heads":4,)" + more));
  };
  EXPECT_THAT(with(R"("head_dim":16777216,"num_attention_heads":16777216)"),
              HasSubstr("weights, and at most"));
  EXPECT_THAT(with(R"("num_hidden_layers":16777216)"), HasSubstr("at most 4096"));
  EXPECT_THAT(with(R"("kv_lora_rank":512)"), HasSubstr("kv_lora_rank is not simulated"));
  EXPECT_THAT(with(R"("n_shared_experts":1)"), HasSubstr("n_shared_experts is not simulated"));
}

TEST(Shapes, AreReadAsFamiliesWriteThem) {
  const auto with = [](const std::string& more) {
    return parse_config(config_with(R"("num_attention_heads":4,)" + more), "c");
  };
  EXPECT_EQ(with(R"("multi_query":true)").kv_heads, 1);
  EXPECT_EQ(with(R"("multi_query":true,"new_decoder_architecture":true,"num_kv_heads":2)").kv_heads, 2);
  EXPECT_EQ(with(R"("num_local_experts":0)").experts, 0);
  EXPECT_EQ(with(R"("model_type":"a\u001b\nb")").name, "model");
}

TEST(Equations, AreThePapers) {
  EXPECT_DOUBLE_EQ(accept_length(3, 0.5), 1 + 0.5 + 0.25 + 0.125);
  EXPECT_DOUBLE_EQ(accept_length(5, 1), 6);
  EXPECT_DOUBLE_EQ(accept_length(5, 0), 1);
  // The mean accept lengths that table II implies, and a cell of table III with the ratio that fits all.
  EXPECT_NEAR(accept_length(8.02, 0.968), 7.94, 0.01);
  EXPECT_NEAR(speedup(6.57, 0.991, 0.357, 1), 2.19, 0.01);
}

TEST(Steps, AreMadeUpAsEquationOneSays) {
  const Steps steps = steps_of(6.5, 0.97, 100, 20'000);
  EXPECT_EQ(steps.tokens(), 20'000);
  const auto count = static_cast<double>(steps.steps.size());
  EXPECT_NEAR(static_cast<double>(steps.drafted()) / count, 6.5, 0.01);
  EXPECT_NEAR(20'000 / count, accept_length(6.5, 0.97), 0.01);
  EXPECT_EQ(steps.steps.front().position, 101);
  EXPECT_EQ(steps_of(0, 0, 1, 3).steps.size(), 3u);
  EXPECT_EQ(steps_of(4, 1, 1, 10).steps.size(), 2u);
}

constexpr const char* kTrace =
    "{\"position\":11,\"drafted\":4,\"accepted\":2,\"draft_passes\":5,\"rows\":5}\n"
    "{\"position\":14,\"drafted\":0,\"accepted\":0,\"draft_passes\":1,\"rows\":1}\n"
    "{\"end\":true,\"prompt_tokens\":10,\"generated_tokens\":5,\"steps\":2,\"drafted\":4,\"accepted\":2,"
    "\"draft_passes\":6}\n";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kTrace;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Traces, AreRead) {
  const Steps steps = parse_steps(kTrace, "trace");
  EXPECT_EQ(steps.prompt_tokens, 10);
  ASSERT_EQ(steps.steps.size(), 2u);
  EXPECT_EQ(steps.steps[0],
            (Step{.position = 11, .drafted = 4, .accepted = 2, .draft_passes = 5, .rows = 5}));
  EXPECT_EQ(steps.tokens(), 4);
}

TEST(Traces, AreRefusedWhenTheyContradictThemselves) {
  const std::string trace = kTrace;
  for (size_t length = 1; length < trace.size(); ++length) {
    EXPECT_THAT(steps_refusal(trace.substr(0, length)), ::testing::AnyOf(HasSubstr("cut off"))) << length;
  }
  EXPECT_THAT(steps_refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(steps_refusal("hello\n"), HasSubstr("line 1: is no JSON object"));
  EXPECT_THAT(steps_refusal(changed("\"accepted\":2", "\"accepted\":5")), HasSubstr("accepted 5 of 4"));
  EXPECT_THAT(steps_refusal(changed("\"accepted\":2", "\"accepted\":1")), HasSubstr("does not follow"));
  EXPECT_THAT(steps_refusal(changed("\"rows\":5", "\"rows\":4")), HasSubstr("4 rows"));
  EXPECT_THAT(steps_refusal(changed("\"rows\":5", "\"rows\":-5")), HasSubstr("\"rows\" must be from 0"));
  EXPECT_THAT(steps_refusal(changed("\"rows\":5", "\"rows\":5.5")), HasSubstr("whole number"));
  EXPECT_THAT(steps_refusal(changed("\"rows\":5", "\"rose\":5")), HasSubstr("\"rows\" is missing"));
  EXPECT_THAT(steps_refusal(changed("\"steps\":2", "\"steps\":3")), HasSubstr("\"steps\" is 3"));
  EXPECT_THAT(steps_refusal(changed("\"prompt_tokens\":10", "\"prompt_tokens\":99")),
              HasSubstr("does not end before position 11"));
  EXPECT_THAT(steps_refusal(std::string(kTrace) + "{}\n"), HasSubstr("line 4: something follows"));
  EXPECT_THAT(refusal([] { steps_of(4, 1.01, 1, 1); }), HasSubstr("acceptance rate"));
  EXPECT_THAT(refusal([] { steps_of(-1, 0.5, 1, 1); }), HasSubstr("draft length"));
}

TEST(GenerateJson, GivesStepsWithTheSameSums) {
  const Steps steps = parse_steps(
      "{\"prompt_tokens\":9,\"drafted\":100,\"accepted\":61,\"target_passes\":23,\"draft_passes\":123}", "g");
  EXPECT_EQ(steps.steps.size(), 23u);
  EXPECT_EQ(steps.drafted(), 100);
  EXPECT_EQ(steps.accepted(), 61);
  EXPECT_EQ(steps.draft_passes(), 123);
  EXPECT_EQ(steps.tokens(), 84);
  for (const Step& step : steps.steps) EXPECT_LE(step.accepted, step.drafted);
  const Steps few = parse_steps(
      "{\"prompt_tokens\":9,\"drafted\":5,\"accepted\":4,\"target_passes\":7,\"draft_passes\":5}", "g");
  EXPECT_EQ(few.accepted(), 4);
  for (const Step& step : few.steps) EXPECT_LE(step.accepted, step.drafted);
  EXPECT_THAT(steps_refusal("{\"prompt_tokens\":9,\"drafted\":1,\"accepted\":61,\"target_passes\":23,"
                            "\"draft_passes\":1}"),
              HasSubstr("accepted 61 of 1"));
  // As many steps as can be simulated, and no more memory than for those.
  EXPECT_THAT(steps_refusal("{\"prompt_tokens\":9,\"drafted\":0,\"accepted\":0,\"target_passes\":16777216,"
                            "\"draft_passes\":0}"),
              HasSubstr("\"target_passes\" must be from 0 to 4194304"));
}

TEST(Decoding, CountsWhatTheStepsSay) {
  Shape shape = load_shape("llama3.2-3b");
  shape.layers = 2;
  const Steps steps = parse_steps(kTrace, "trace");
  const Decoding decoding = decode(load_hardware("speq"), load_dram("lpddr5-6400"), shape, steps);
  EXPECT_EQ(decoding.passes, 2);
  EXPECT_EQ(decoding.draft_passes, 6);
  EXPECT_EQ(decoding.tokens, 4);
  EXPECT_EQ(decoding.time, decoding.draft_time + decoding.full_time);
  EXPECT_NEAR(*decoding.dram_joules,
              static_cast<double>(decoding.totals.bytes_read + decoding.totals.bytes_written) * 8 *
                  *load_dram("lpddr5-6400").pj_per_bit * 1e-12,
              1e-12);
  Dram unknown = load_dram("lpddr4-3200");
  unknown.pj_per_bit = std::nullopt;
  EXPECT_FALSE(decode(load_hardware("speq"), unknown, shape, steps).dram_joules);
  EXPECT_EQ(plain_steps(steps).tokens(), 4);
  EXPECT_EQ(plain_steps(steps).steps.back().position, 14);
  EXPECT_THAT(refusal([&] { decode(load_hardware("fp16"), load_dram("hbm2"), shape, steps); }),
              HasSubstr("no quantize mode"));
}

TEST(Decoding, ReadsTheSharesOfWeightsThatThePaperTurnsOn) {
  // A row after 1,536 tokens: SPEQ II-A says 98.8 % for all.
  const auto share_of = [](const char* name) {
    Steps steps{.prompt_tokens = 1535, .steps = {{.position = 1536}}};
    const Decoding one = decode(load_hardware("fp16"), load_dram("hbm2"), load_shape(name), steps);
    return static_cast<double>(one.totals.weight_bytes) / static_cast<double>(one.totals.bytes_read);
  };
  EXPECT_NEAR(share_of("llama3.1-8b"), 0.987, 5e-4);
  EXPECT_NEAR(share_of("llama2-7b"), 0.943, 5e-4);
  EXPECT_NEAR(share_of("llama2-13b"), 0.953, 5e-4);
}

}  // namespace
}  // namespace workload_test
}  // namespace verbatim::accelerator
