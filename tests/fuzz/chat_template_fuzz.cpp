// Any text as a chat template, with any text as its variables: it renders, or is refused with an Error.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/utf8.h"
#include "templates/evaluator.h"
#include "templates/parser.h"
#include "verbatim/error.h"

namespace {

using namespace verbatim;

constexpr std::string_view kVariables =
    R"({"messages":[{"role":"system","content":"Be brief. "},{"role":"user","content":"Gr\u00fc\u00dfe\n<b>"},)"
    R"({"role":"assistant","content":null,"tool_calls":[{"id":"123456789","function":{"name":"f","arguments":{"x":[1,2.5,null,true]}}}]},)"
    R"({"role":"tool","content":"4"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],)"
    R"("add_generation_prompt":true,"n":7,"x":"  a b ","d":{"b":1,"a":[]}})";

/// What was rendered must be whole: valid UTF-8, with origins for every byte.
void check(const jinja::TracedText& text) {
  size_t begin = 0;
  for (const jinja::TracedText::Run& run : text.runs()) {
    if (run.end <= begin) std::abort();
    begin = run.end;
  }
  if (begin != text.size() || find_invalid_utf8(text.bytes()) != std::string_view::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A byte 0xFF, which no template holds, stands between the template and its variables.
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t border = input.find('\xff');
  const std::string_view variables = border == std::string_view::npos ? kVariables : input.substr(border + 1);
  try {
    const jinja::Template parsed = jinja::parse(input.substr(0, border));
    check(jinja::render(parsed, variables, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}, 0));
  } catch (const Error&) {
  }
  return 0;
}
