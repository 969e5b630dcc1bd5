#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "kv/dense.h"
#include "support/drafting.h"
#include "support/synthetic_model.h"

namespace verbatim {
namespace {

/// A view of everything that counts how often it is asked, layer by layer.
class CountingView : public SparseCache {
 public:
  explicit CountingView(int32_t layers) : asked(static_cast<size_t>(layers)) {}
  SparseView view(int64_t layer, int64_t /*head*/, int64_t /*position*/) const override {
    ++asked[static_cast<size_t>(layer)];
    return {};
  }
  mutable std::vector<std::atomic<int>> asked;
};

// A window bounds the cost of a layer already, and a view would show drafts positions that lie outside of it.
TEST(SparseViews, AreNotAskedInLayersWithAWindow) {
  test::TinyModelOptions options{.model_type = "gemma3_text", .layers = 7, .sliding_window = 4};
  const Decoder decoder = test::tiny_decoder(options);
  ASSERT_EQ(decoder.config().windowless_layers, std::vector<int32_t>{5});
  const CountingView view(options.layers);
  PassKind kind = Reading::kFull;
  kind.sparse = &view;
  DenseCache cache(decoder.cache_shape(), 8);
  KvCache* const caches[] = {&cache};
  const std::vector<Row> rows = {{0, 0, 10}, {0, 1, 11}};
  DecoderWorkspace workspace;
  ThreadTeam team(1);
  decoder.forward(rows, kind, caches, 0, workspace, team);
  for (int32_t layer = 0; layer < options.layers; ++layer) {
    EXPECT_EQ(view.asked[static_cast<size_t>(layer)] > 0, layer == 5) << layer;
  }
}

}  // namespace
}  // namespace verbatim
