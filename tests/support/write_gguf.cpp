// write_gguf MODEL FILE f32|f16|q8_0: writes a Llama in Hugging Face layout as a GGUF file, for checks of the
// library as strangers use it.

#include <cstdio>
#include <map>
#include <string>

#include "support/trained_gguf.h"

int main(int argc, char** argv) {
  const std::map<std::string, verbatim::DType> types = {
      {"f32", verbatim::DType::kF32}, {"f16", verbatim::DType::kF16}, {"q8_0", verbatim::DType::kQ8_0}};
  const auto type = argc == 4 ? types.find(argv[3]) : types.end();
  if (type == types.end()) {
    std::fprintf(stderr, "usage: write_gguf MODEL FILE f32|f16|q8_0\n");
    return 2;
  }
  verbatim::test::write_trained_gguf(argv[1], argv[2], type->second);
  return 0;
}
