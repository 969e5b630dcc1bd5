#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "drafting/evaluator.h"
#include "drafting/neural_drafter.h"
#include "kv/dense.h"
#include "support/engine_support.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "text/tokenizer.h"

namespace verbatim::test {

using Tokens = std::vector<int32_t>;

/// A tiny model with random weights and what drafts for it, without an engine around them.
inline Decoder tiny_decoder(const TinyModelOptions& options) {
  const TemporaryFolder folder;
  write_tiny_llama(folder.path() / "model", options);
  return load_decoder(folder.path() / "model");
}

inline TinyModelOptions small_vocabulary(int32_t tokens, uint32_t seed = 1) {
  TinyModelOptions options;
  options.hidden_size = 64;
  options.intermediate_size = 96;
  options.heads = 2;
  options.kv_heads = 1;
  options.vocab_size = tokens;
  options.dtype = DType::kF32;
  options.seed = seed;
  return options;
}

/// A tokenizer for models that need to have one in common.
inline std::shared_ptr<const Tokenizer> any_tokenizer() {
  static const std::shared_ptr<const Tokenizer> tokenizer =
      load_tokenizer(open_checkpoint(default_model()).tokenizer);
  return tokenizer;
}

/// A sequence whose tokens but the last are verified.
inline Sequence verified(Tokens tokens, Evaluator& evaluator, int64_t capacity = 128) {
  Sequence sequence{std::move(tokens),
                    std::make_unique<DenseCache>(evaluator.decoder().cache_shape(), capacity)};
  const auto known = static_cast<int64_t>(sequence.tokens.size()) - 1;
  const auto past = std::span<const int32_t>(sequence.tokens).first(static_cast<size_t>(known));
  if (known > 0) evaluator.evaluate(past, 0, 0, Reading::kFull, *sequence.cache);
  sequence.cache->set_length(known);
  return sequence;
}

/// A drafter that proposes whatever a function says.
class ScriptedDrafter : public Drafter {
 public:
  using Script = std::function<void(const Sequence& sequence, int64_t room, Draft& draft)>;
  explicit ScriptedDrafter(Script script) : script_(std::move(script)) {}
  void propose(Sequence& sequence, Sampler&, const DraftLimits&, int64_t room, Draft& draft) override {
    script_(sequence, room, draft);
    stats.drafted += draft.size();
  }
  void observe(const Sequence&) override {}

 private:
  Script script_;
};

/// The tokens of the nodes, in their order.
inline Tokens tokens_of(const Draft& draft) {
  Tokens tokens;
  for (const DraftNode& node : draft.nodes) tokens.push_back(node.token);
  return tokens;
}

/// The tokens from the root to a node.
inline Tokens path_to(const Draft& draft, int32_t node) {
  Tokens path;
  for (; node != DraftNode::kRoot; node = draft.nodes[static_cast<size_t>(node)].parent) {
    path.insert(path.begin(), draft.nodes[static_cast<size_t>(node)].token);
  }
  return path;
}

inline void expect_same(const Draft& draft, const Draft& expected) {
  ASSERT_EQ(draft.nodes.size(), expected.nodes.size());
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    const DraftNode& a = draft.nodes[i];
    const DraftNode& b = expected.nodes[i];
    EXPECT_EQ(a.token, b.token) << "node " << i;
    EXPECT_EQ(a.parent, b.parent) << "node " << i;
    EXPECT_EQ(a.depth, b.depth) << "node " << i;
    EXPECT_EQ(a.rank, b.rank) << "node " << i;
    EXPECT_EQ(a.confidence, b.confidence) << "node " << i;
    EXPECT_EQ(a.path, b.path) << "node " << i;
  }
  EXPECT_EQ(draft.unsure, expected.unsure);
}

}  // namespace verbatim::test
