#include "accelerator/paper/equations.h"

#include <cmath>

namespace verbatim::accelerator {

double accept_length(double draft_length, double acceptance) {
  if (acceptance >= 1) return draft_length + 1;
  return (1 - std::pow(acceptance, draft_length + 1)) / (1 - acceptance);
}

double speedup(double draft_length, double acceptance, double draft_time, double verify_time) {
  return accept_length(draft_length, acceptance) / (draft_length * draft_time + verify_time);
}

}  // namespace verbatim::accelerator
