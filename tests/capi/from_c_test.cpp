#include "capi/c_model.h"

extern "C" int answer_from_c(const char* path, char* text, size_t capacity);

namespace verbatim::test {
namespace {

TEST(CHeader, IsC) {
  char text[100] = "";
  ASSERT_EQ(answer_from_c(c_model_file().c_str(), text, sizeof text), 0) << verbatim_error_message();
  Engine engine(same_model(), {.max_batch = 1, .threads = 2});
  GenerateOptions options;
  options.max_tokens = 8;
  options.ignore_eos = true;
  EXPECT_EQ(text, engine.generate({same_model().encode("abc"), options, load_recipe("plain")}).text);
}

}  // namespace
}  // namespace verbatim::test
