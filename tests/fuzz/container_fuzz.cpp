// Any bytes as a packed container, their checksums made right: an Error, or weights that can be multiplied
// with and a vocabulary that can be loaded.

#include "../support/use_container.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static verbatim::ThreadTeam team(1);
  const verbatim::test::AlignedBytes bytes({reinterpret_cast<const char*>(data), size});
  verbatim::test::forge_preamble(bytes.span());
  verbatim::test::use_container(bytes.span(), team);
  return 0;
}
