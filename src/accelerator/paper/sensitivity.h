#pragma once

#include <string>
#include <vector>

#include "accelerator/decode.h"

namespace verbatim::accelerator {

/// What becomes of the speedup when one assumption is another.
struct Sensitivity {
  std::string model;
  std::string assumption;  ///< what is changed, and to what
  double speedup = 0;      ///< over FP16 on the same array and memory, changed too
  double draft_time = 0;   ///< Td/Tar
  double verify_time = 0;  ///< Tv/Tar
};

/// Changes each assumption that the paper leaves open, one at a time; the first entry changes nothing. L
/// and r are those of table II for Llama2-7b and MT-bench.
std::vector<Sensitivity> sensitivities(const Hardware& hardware, const Dram& dram, int64_t prompt_tokens,
                                       const Shape& shape = load_shape("llama2-7b"));

/// The list as text; it is of one model, and not empty.
std::string text_of(const std::vector<Sensitivity>& sensitivities);

}  // namespace verbatim::accelerator
