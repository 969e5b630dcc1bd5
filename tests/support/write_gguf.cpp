// write_gguf MODEL FILE f32|f16|q8_0|q4_k_m: writes a Llama in Hugging Face layout as a GGUF file, for checks
// of the library as strangers use it and for measurements of files as strangers have them.

#include <cstdio>
#include <map>
#include <string>

#include "support/trained_gguf.h"

int main(int argc, char** argv) {
  using namespace verbatim;
  const std::map<std::string, DType> types = {
      {"f32", DType::kF32}, {"f16", DType::kF16}, {"q8_0", DType::kQ8_0}};
  const std::string type = argc == 4 ? argv[3] : "";
  if (type == "q4_k_m") {
    test::write_trained_gguf(argv[1], argv[2], test::type_in_q4_k_m);
  } else if (types.count(type) == 1) {
    test::write_trained_gguf(argv[1], argv[2], types.at(type));
  } else {
    std::fprintf(stderr, "usage: write_gguf MODEL FILE f32|f16|q8_0|q4_k_m\n");
    return 2;
  }
  return 0;
}
