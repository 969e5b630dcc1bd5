#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/byte_model.h"
#include "verbatim/verbatim.h"
#include "verbatim/verbatim_c.h"

namespace verbatim::test {

/// The file of a tiny model with random weights, whose vocabulary has a token for every byte.
inline const std::filesystem::path& c_model_file() {
  static const TemporaryFolder folder;
  static const std::filesystem::path file = [] {
    measure_apart();
    write_tiny_gguf(folder.path() / "model.gguf", byte_model_options());
    return folder.path() / "model.gguf";
  }();
  return file;
}

/// That model, opened once through the interface for C for recipes that read nothing but its own weights.
inline verbatim_model* c_model() {
  static verbatim_model* const model = [] {
    verbatim_load_options options;
    verbatim_load_options_init(&options, sizeof options);
    options.recipe = "ngram";
    options.threads = 2;
    verbatim_model* opened = nullptr;
    EXPECT_EQ(verbatim_model_load(c_model_file().c_str(), &options, &opened), VERBATIM_OK)
        << verbatim_error_message();
    return opened;
  }();
  return model;
}

/// The same model as C++ sees it.
inline const Model& same_model() {
  static const Model model = Model::load(c_model_file(), {.recipe = "ngram", .threads = 2});
  return model;
}

/// An engine that is closed at the end of its test.
class CEngine {
 public:
  explicit CEngine(int32_t max_batch = 4) {
    verbatim_engine_options options;
    verbatim_engine_options_init(&options, sizeof options);
    options.max_batch = max_batch;
    options.threads = 2;
    EXPECT_EQ(verbatim_engine_open(c_model(), &options, &engine_), VERBATIM_OK) << verbatim_error_message();
  }
  ~CEngine() { verbatim_engine_close(engine_); }
  CEngine(const CEngine&) = delete;
  CEngine& operator=(const CEngine&) = delete;
  operator verbatim_engine*() const { return engine_; }

 private:
  verbatim_engine* engine_ = nullptr;
};

/// Options of a short generation at a temperature.
inline verbatim_generate_options c_options(int64_t max_tokens, const char* recipe = "plain") {
  verbatim_generate_options options;
  verbatim_generate_options_init(&options, sizeof options);
  options.recipe = recipe;
  options.max_tokens = max_tokens;
  options.temperature = 0.9f;
  options.seed = 11;
  options.ignore_eos = 1;
  return options;
}

/// The C++ engine's answer to what c_options() asks for.
inline GenerateResult same_answer(const std::string& prompt, int64_t max_tokens) {
  Engine engine(same_model(), {.max_batch = 1, .threads = 2});
  GenerateOptions options;
  options.sampling.temperature = 0.9f;
  options.sampling.seed = 11;
  options.max_tokens = max_tokens;
  options.ignore_eos = true;
  return engine.generate({same_model().encode(prompt), options, load_recipe("plain")});
}

inline std::string text_of(verbatim_result* result) {
  const char* text = nullptr;
  size_t length = 0;
  EXPECT_EQ(verbatim_result_text(result, &text, &length), VERBATIM_OK);
  return {text, length};
}

inline std::vector<int32_t> tokens_of(verbatim_result* result) {
  const int32_t* tokens = nullptr;
  size_t count = 0;
  EXPECT_EQ(verbatim_result_tokens(result, &tokens, &count), VERBATIM_OK);
  return {tokens, tokens + count};
}

/// Expects a call to have failed with a status, and its message to be one line with a part.
#define EXPECT_REFUSED(call, status, part)                                          \
  do {                                                                              \
    EXPECT_EQ((call), status) << verbatim_error_message();                          \
    EXPECT_THAT(verbatim_error_message(), ::testing::HasSubstr(part));              \
    EXPECT_EQ(std::string(verbatim_error_message()).find('\n'), std::string::npos); \
  } while (false)

}  // namespace verbatim::test
