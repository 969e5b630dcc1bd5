#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "verbatim/structure.h"

namespace verbatim {

/// Unicode characters from `first` to `last`, both included.
struct CharacterRange {
  uint32_t first = 0;
  uint32_t last = 0;

  bool operator==(const CharacterRange&) const = default;
};

/// The last character of Unicode.
inline constexpr uint32_t kLastCharacter = 0x10FFFF;

using NodePointer = std::shared_ptr<const Structure::Node>;

/// A part of a structure: what a Structure refers to. Nodes form trees, in which parts may be shared;
/// recursion goes through the rules of a node of kind kRules alone.
struct Structure::Node {
  enum class Kind : uint8_t {
    kText,        ///< `text`
    kTexts,       ///< one of `texts`
    kCharacter,   ///< one character of `ranges`, written as in a JSON string if `json`
    kJsonString,  ///< the inside of a JSON string, from `least` to `most` characters long
    kFreeText,    ///< UTF-8 without any of `texts`
    kSpecial,     ///< the special token that the vocabulary spells `text`, or `text`
    kSequence,    ///< `parts`, one after the other
    kChoice,      ///< one of `parts`
    kRepeat,      ///< parts[0], from `least` to `most` times, with `text` between them
    kMembers,     ///< `parts` in their order with `text` between them, those left out that are not `required`
    kRules,       ///< parts[0], in which kReference means one of the other parts
    kReference,   ///< the part `least` of the kRules around it
  };
  Kind kind = Kind::kText;
  std::string text = {};
  /// Of kRules: the place in the schema that each part comes from, for messages.
  std::vector<std::string> texts = {};
  std::vector<CharacterRange> ranges = {};
  std::vector<NodePointer> parts = {};
  std::vector<uint8_t> required = {};  ///< of kMembers: for each part 1 or 0
  NodePointer extra = nullptr;         ///< of kMembers: what may come any number of times behind the parts
  int32_t least = 0;
  int32_t most = -1;  ///< -1: without end
  bool json = false;
  /// What tells this node from every other one, for those that were made of a text; empty otherwise.
  std::string source = {};
  int32_t depth = 0;  ///< the nodes on the longest way down from it; make_node() counts them
};

/// The deepest tree of nodes.
inline constexpr int32_t kDeepestStructure = 400;

/// Makes a node. Throws Error(kBadInput) when the tree would become deeper than kDeepestStructure.
NodePointer make_node(Structure::Node node);

// Shorter ways to make the nodes that front ends need most.
NodePointer text_node(std::string text);
NodePointer texts_node(std::vector<std::string> texts);
NodePointer sequence_node(std::vector<NodePointer> parts);
NodePointer choice_node(std::vector<NodePointer> parts);
NodePointer repeat_node(NodePointer part, int32_t least, int32_t most, std::string separator = {});
/// A character that must be one of the ranges.
NodePointer character_node(std::vector<CharacterRange> ranges, bool json = false);
NodePointer reference_node(int32_t rule);

/// Whether a node allows the empty text. A reference counts as not empty: rules are JSON values.
bool allows_empty(const Structure::Node& node);
/// The texts of a node but the empty one.
NodePointer without_empty(const NodePointer& node);

/// A text that tells a structure from all others: equal for equal structures that were built alike.
std::string structure_key(const Structure::Node& node);

}  // namespace verbatim
