// Any text as a JSON schema and as a regular expression: an Error, or a structure in which some text can be
// begun and, byte by byte, brought to an end.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "structure/automaton.h"
#include "structure/node.h"
#include "verbatim/error.h"
#include "verbatim/structure.h"

namespace {

using namespace verbatim;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Reads a text that the data choose, as far as it goes.
void walk(const Structure& structure, std::string_view choices) {
  Automaton automaton(std::make_shared<const Grammar>(
      make_grammar(*structure.node(), [](std::string_view) { return std::nullopt; })));
  Automaton::State state = automaton.start();
  require(state != Automaton::kDead);
  size_t length = 0;
  for (const char choice : choices) {
    const ByteSet bytes = automaton.bytes(state);
    // Every state that a text leads to can be left, or is an end.
    require(bytes.any() || automaton.complete(state));
    if (bytes.none() || ++length > 300) break;
    auto byte = static_cast<uint8_t>(choice);
    while (!bytes.test(byte)) ++byte;
    state = automaton.after(state, byte);
    require(state != Automaton::kDead);
  }
}

void try_structure(std::string_view text, std::string_view choices, Structure (*make)(std::string_view)) {
  try {
    walk(make(text), choices);
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_structure(text, text, Structure::json_schema);
  if (size < 200) try_structure(text, text, Structure::regex);
  return 0;
}
