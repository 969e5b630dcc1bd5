// Not under AddressSanitizer, which has allocation functions of its own.
#ifndef __SANITIZE_ADDRESS__

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "sampling/reference.h"
#include "sampling/sampler.h"

namespace {
int allocations = 0;
}

// These replace the operators of the whole program, which is why they only count. Not inlined, lest the
// compiler see free() meet an operator new.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace verbatim {
namespace {

TEST(Sampler, AllocatesOnlyInItsFirstCalls) {
  std::mt19937 random(2);
  const std::vector<float> flat = test::random_logits(random, 20000, 0.1f);
  const std::vector<float> steep = test::random_logits(random, 20000, 5.0f);
  const std::vector<int32_t> history = {1, 2, 3};
  for (const int32_t top_k : {0, 40, 15000}) {
    SamplingOptions options;
    options.temperature = 0.8f;
    options.top_k = top_k;
    options.top_p = 0.95f;
    options.min_p = 0.01f;
    options.repetition_penalty = 1.1f;
    Sampler sampler(options);
    Guess guesses[8];
    sampler.sample(steep, 3, history);
    sampler.best(steep, 3, history, guesses);
    const int before = allocations;
    for (int64_t position = 4; position < 20; ++position) {
      sampler.sample(flat, position, history);
      sampler.sample(steep, position, history);
      sampler.best(flat, position, history, guesses);
      sampler.best(steep, position, history, guesses);
    }
    EXPECT_EQ(allocations, before) << "top-k " << top_k;
  }
}

}  // namespace
}  // namespace verbatim

#endif
