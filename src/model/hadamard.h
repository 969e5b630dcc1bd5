#pragma once

#include <cstdint>
#include <vector>

namespace verbatim {

/// An orthogonal transform by a Hadamard matrix, whose entries are 1 or -1 times a common factor. It spreads
/// an outlying channel over all channels (QuaRot; QSpec §4). The order is a product of two: Sylvester's
/// construction gives a power of two, Paley's (of either kind) the rest, with as few factors of two as it
/// needs. For an order that this does not reach, the transform has equal blocks, as large as possible.
///
/// The result depends on the input alone, bit for bit, on every machine.
class Hadamard {
 public:
  /// Makes a transform of `order` ≥ 1 channels.
  explicit Hadamard(int64_t order);

  /// x = x · H in place, where x is [order][width]: channel i is the `width` numbers from i · width on.
  void forward(float* x, int64_t width = 1) const;

  int64_t order() const { return order_; }
  /// The number of channels that are mixed with one another: the order, or a divisor of it.
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
