#include "kernels/generic/table.h"
#include "kernels/isa_tables.h"
#include "kernels/neon/dot.h"
#include "kernels/neon/words.h"

namespace verbatim::neon {

const KernelTable& table() {
  static const KernelTable kernels = generic::make_table<F32x16, U16x32, Dot>("neon");
  return kernels;
}

}  // namespace verbatim::neon
