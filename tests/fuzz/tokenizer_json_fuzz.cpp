// Any bytes as a tokenizer.json: it loads and then encodes and decodes, as a whole and as a stream, or is
// refused with an Error.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "text/detokenizer.h"
#include "text/tokenizer_json.h"
#include "verbatim/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace verbatim;
  static constexpr std::string_view kTexts[] = {"", " ", "ab <s>ab  12", "a\u0301\u00e9 \U0001F600\n\t<t>",
                                                "aaaaaaaaaaaaaaaaaaaab"};
  try {
    const auto tokenizer = parse_tokenizer_json({reinterpret_cast<const char*>(data), size}, {});
    for (const std::string_view text : kTexts) {
      try {
        const auto tokens = tokenizer->encode(text, {});
        for (const Token token : tokens) {
          if (token < 0 || token >= tokenizer->vocab_size()) std::abort();
        }
        StreamingDetokenizer stream(*tokenizer, true);
        std::string streamed;
        for (const Token token : tokens) streamed += stream.push(token);
        streamed += stream.finish();
        if (streamed != tokenizer->decode(tokens)) std::abort();
      } catch (const Error&) {  // a pattern that takes too long on this text
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
