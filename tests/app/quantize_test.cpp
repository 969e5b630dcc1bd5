#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/run_program.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "support/trained_gguf.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using test::expect_refused;
using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;

TEST(QuantizeCommand, MakesAModelThatTheRecipesRun) {
  const test::TemporaryFolder folder;
  const fs::path model = test::draft_gguf();
  const fs::path text = folder.write(
      "text.txt", "Once upon a time there was a girl. She liked to play with her dog in the park.");
  const std::string always = folder.write("always.toml",
                                          "name = \"always\"\nsummary = \"a\"\nsource = \"b\"\n"
                                          "reading = \"int4-w4a16\"\n[drafter]\nkind = \"self\"\n"
                                          "reading = \"int4-w4a4\"\n[drafter.stop]\nlength = 3\n");
  for (const std::string scheme : {"rtn", "awq", "gptq", "atom", "quarot"}) {
    const fs::path quantized = folder.path() / scheme;
    const RunResult made = run_program(
        {"quantize", model, "-o", quantized, "--scheme", scheme, "--calibration", text, "--threads", "2"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(made.err, "");
    EXPECT_THAT(made.out, HasSubstr("int4, scheme " + scheme));
    const auto generate = [&](const std::string& recipe) {
      return run_program({"generate", quantized, "-p", "Once upon a time", "-n", "40", "--recipe", recipe});
    };
    const RunResult plain = generate("w4a16");
    ASSERT_EQ(plain.exit_code, 0) << plain.err;
    EXPECT_GT(plain.out.size(), 40u);
    EXPECT_EQ(generate("qspec").out, plain.out) << scheme;
    EXPECT_EQ(generate(always).out, plain.out) << scheme;
    EXPECT_EQ(generate("w4a4").exit_code, 0);
    for (const std::string other : {"atom", "quarot"}) {
      const RunResult result = generate("qspec-" + other);
      if (other == scheme) {
        EXPECT_EQ(result.out, plain.out) << scheme;
      } else {
        EXPECT_NE(result.exit_code, 0);
        EXPECT_THAT(result.err, HasSubstr("--scheme " + other));
      }
    }
    const RunResult inspected = run_program({"inspect", quantized, "--verify"});
    EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
    EXPECT_THAT(inspected.out, HasSubstr("quantization"));
    EXPECT_THAT(inspected.out, HasSubstr(scheme));
    const RunResult own = run_program({"inspect", model});
    const auto parameters = [](const std::string& text) {
      const size_t at = text.find("parameters");
      return text.substr(at, text.find('\n', at) - at);
    };
    EXPECT_EQ(parameters(inspected.out), parameters(own.out));
    const RunResult refused = run_program({"generate", quantized, "-p", "a", "--recipe", "ml-specqd"});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr("quantized with the scheme " + scheme));
  }
}

TEST(QuantizeCommand, RefusesBadInputInOneLine) {
  const test::TemporaryFolder folder;
  const fs::path model = folder.path() / "model";
  const fs::path out = folder.path() / "out";
  test::write_tiny_llama(model);
  folder.write("empty.txt", "");
  expect_refused({"quantize", folder.path() / "absent", "-o", out}, 1, {"absent does not exist"});
  expect_refused({"quantize", model, "-o", model}, 1, {"model", "not empty"});
  expect_refused(
      {"quantize", model, "-o", out, "--scheme", "awq", "--calibration", folder.path() / "empty.txt"}, 1,
      {"vocabulary"});
  expect_refused({"quantize", model, "-o", out, "--scheme", "atom"}, 2, {"--calibration FILE"});
  expect_refused({"quantize", model, "-o", out, "--scheme", "gptq"}, 2, {"gptq", "--calibration FILE"});
  expect_refused({"quantize", model, "-o", out, "--scheme", "spqr"}, 2, {"spqr", "gptq", "quarot"});
  expect_refused({"quantize", model, "-o", out, "--bits", "5"}, 2, {"--bits"});
  expect_refused({"quantize", model, "-o", out, "--scheme", "atom", "--bits", "3"}, 2, {"atom", "4 bits"});
  expect_refused({"quantize", model}, 2, {"--output is required"});
  EXPECT_FALSE(fs::exists(out));
  ASSERT_EQ(run_program({"quantize", model, "-o", out}).exit_code, 0);
  expect_refused({"quantize", out, "-o", folder.path() / "again"}, 1, {"packed already"});
  expect_refused({"quantize", model, "-o", out}, 1, {"out", "not empty"});
}

}  // namespace
}  // namespace verbatim
