// Any text as a recording of the agent: an Error, or a run that ends.

#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/record/journal.h"
#include "verbatim/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string question;
  int64_t calls = 0;
  try {
    verbatim::agent::replay(std::string(reinterpret_cast<const char*>(data), size), question, {}, calls);
  } catch (const verbatim::Error&) {
  }
  return 0;
}
