#pragma once

#include <memory>
#include <span>
#include <vector>

#include "structure/compiled_structure.h"

namespace verbatim {

/// Holds the tokens of one generation to a structure. What it says depends on the tokens that it is told
/// alone; it remembers the last ones, so that being told them again, with others behind them, is quick. Not
/// for several threads at once.
class StructureCursor {
 public:
  /// `ends` are the tokens that end the sequence, the likeliest first. They are allowed where the text may
  /// end.
  StructureCursor(std::shared_ptr<CompiledStructure> structure, std::vector<int32_t> ends)
      : structure_(std::move(structure)), ends_(std::move(ends)) {}

  /// Sets to minus infinity the logits of all tokens that cannot follow `generated`. There may be fewer
  /// logits than tokens. Where one text alone can follow, all logits but that of the tokenizer's own next
  /// token of this text; if that logit is minus infinity before, or the token ends the sequence, then the
  /// other tokens of the text may come.
  void apply(std::span<const int32_t> generated, std::span<float> logits);

  /// The tokens, at most `most`, of the only text that can follow `generated`; none where there are several.
  ForcedTokens forced(std::span<const int32_t> generated, size_t most) {
    return structure_->forced(generated, ends_, most, history_);
  }

 private:
  bool holds_to_first(const TokenMask& mask, std::span<const float> logits) const;

  std::shared_ptr<CompiledStructure> structure_;
  std::vector<int32_t> ends_;
  StructureHistory history_;
};

}  // namespace verbatim
