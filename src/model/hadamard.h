#pragma once

#include <cstdint>
#include <vector>

namespace verbatim {

/// An orthogonal transform by a Hadamard matrix, whose entries are all 1 or all -1 but for a common factor:
/// it spreads an outlying channel over all of them (QuaRot; QSpec §4). Sylvester's construction gives the
/// power of two in the order, Paley's (of either kind) what is left of it, with as few powers of two as it
/// needs. For the orders that neither reaches, the transform is one of equal blocks, as large as can be.
///
/// What comes out depends on the input alone, bit for bit, whatever the machine.
class Hadamard {
 public:
  /// `order` ≥ 1: how many channels are mixed.
  explicit Hadamard(int64_t order);

  /// x = x · H in place, where x is [order][width]: channel i is the `width` numbers from i · width on.
  void forward(float* x, int64_t width = 1) const;

  int64_t order() const { return order_; }
  /// Channels that are mixed with one another: the order, or a divisor of it.
  int64_t block() const { return paley_order_ * sylvester_order_; }

 private:
  void mix_blocks(float* x, int64_t width) const;
  void mix_across(float* x, int64_t width) const;

  int64_t order_;
  int64_t paley_order_ = 1;
  int64_t sylvester_order_ = 1;
  std::vector<float> paley_;  ///< [paley_order][paley_order], 1 and -1; empty for the order 1
  float scale_ = 1.0f;
};

}  // namespace verbatim
