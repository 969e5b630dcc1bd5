#include "structure/node.h"

#include <algorithm>
#include <span>

#include "base/error.h"

namespace verbatim {

using Node = Structure::Node;
using Kind = Node::Kind;

NodePointer make_node(Node node) {
  for (const NodePointer& part : node.parts) node.depth = std::max(node.depth, part->depth + 1);
  if (node.extra != nullptr) node.depth = std::max(node.depth, node.extra->depth + 1);
  if (node.depth > kDeepestStructure) {
    bad_input("a structure nests deeper than {} levels; make it flatter", kDeepestStructure);
  }
  return std::make_shared<const Node>(std::move(node));
}

NodePointer text_node(std::string text) {
  return make_node({.kind = Kind::kText, .text = std::move(text)});
}

NodePointer texts_node(std::vector<std::string> texts) {
  return make_node({.kind = Kind::kTexts, .texts = std::move(texts)});
}

NodePointer sequence_node(std::vector<NodePointer> parts) {
  return make_node({.kind = Kind::kSequence, .parts = std::move(parts)});
}

NodePointer choice_node(std::vector<NodePointer> parts) {
  if (parts.size() == 1) return parts.front();
  return make_node({.kind = Kind::kChoice, .parts = std::move(parts)});
}

NodePointer repeat_node(NodePointer part, int32_t least, int32_t most, std::string separator) {
  return make_node({.kind = Kind::kRepeat,
                    .text = std::move(separator),
                    .parts = {std::move(part)},
                    .least = least,
                    .most = most});
}

NodePointer character_node(std::vector<CharacterRange> ranges, bool json) {
  return make_node({.kind = Kind::kCharacter, .ranges = std::move(ranges), .json = json});
}

NodePointer reference_node(int32_t rule) {
  return make_node({.kind = Kind::kReference, .least = rule});
}

bool allows_empty(const Node& node) {
  const auto empty = [](const NodePointer& part) { return allows_empty(*part); };
  switch (node.kind) {
    case Kind::kText:
    case Kind::kSpecial:
      return node.text.empty();
    case Kind::kTexts:
      return std::find(node.texts.begin(), node.texts.end(), "") != node.texts.end();
    case Kind::kJsonString:
      return node.least == 0;
    case Kind::kFreeText:
      return true;
    case Kind::kSequence:
      return std::all_of(node.parts.begin(), node.parts.end(), empty);
    case Kind::kChoice:
      return std::any_of(node.parts.begin(), node.parts.end(), empty);
    case Kind::kRepeat:
      return node.least == 0 || (allows_empty(*node.parts[0]) && (node.least == 1 || node.text.empty()));
    case Kind::kMembers:
      return std::find(node.required.begin(), node.required.end(), 1) == node.required.end();
    case Kind::kRules:
      return allows_empty(*node.parts[0]);
    case Kind::kCharacter:
    case Kind::kReference:
      break;
  }
  return false;
}

namespace {

/// The texts of a sequence but the empty one: the first half is not empty, or it is and the second is not.
NodePointer sequence_without_empty(std::span<const NodePointer> parts) {
  if (parts.empty()) return choice_node({});
  if (parts.size() == 1) return without_empty(parts.front());
  const auto first = parts.first(parts.size() / 2);
  const auto second = parts.subspan(first.size());
  std::vector<NodePointer> whole = {sequence_without_empty(first)};
  whole.insert(whole.end(), second.begin(), second.end());
  std::vector<NodePointer> choices = {sequence_node(std::move(whole))};
  const bool empty =
      std::all_of(first.begin(), first.end(), [](const NodePointer& part) { return allows_empty(*part); });
  if (empty) choices.push_back(sequence_without_empty(second));
  return choice_node(std::move(choices));
}

}  // namespace

NodePointer without_empty(const NodePointer& node) {
  if (!allows_empty(*node)) return node;
  Node changed = *node;
  switch (node->kind) {
    case Kind::kTexts:
      std::erase(changed.texts, "");
      return make_node(std::move(changed));
    case Kind::kJsonString:
      changed.least = 1;
      return make_node(std::move(changed));
    case Kind::kSequence:
      return sequence_without_empty(node->parts);
    case Kind::kChoice: {
      std::vector<NodePointer> parts;
      for (const NodePointer& part : node->parts) parts.push_back(without_empty(part));
      return choice_node(std::move(parts));
    }
    case Kind::kRepeat:
      if (!node->text.empty()) {
        bad_input("a repeated structure may be empty and has a separator: repeat one that is not empty");
      }
      return repeat_node(without_empty(node->parts[0]), 1, node->most);
    case Kind::kText:
    case Kind::kSpecial:
      return choice_node({});
    default:
      bad_input(
          "free text or an object's properties cannot be repeated: repeat a structure that is not empty");
  }
}

namespace {

void add_number(int64_t number, std::string& key) {
  key += std::to_string(number);
  key += ';';
}

void add_text(std::string_view text, std::string& key) {
  add_number(static_cast<int64_t>(text.size()), key);
  key += text;
}

void add_node(const Node& node, std::string& key) {
  add_number(static_cast<int64_t>(node.kind), key);
  if (!node.source.empty()) {
    add_text(node.source, key);
    return;
  }
  add_text(node.text, key);
  for (const int32_t number : {node.least, node.most, int32_t{node.json}}) add_number(number, key);
  add_number(std::ssize(node.texts), key);
  for (const std::string& text : node.texts) add_text(text, key);
  add_number(std::ssize(node.ranges), key);
  for (const CharacterRange& range : node.ranges) {
    add_number(range.first, key);
    add_number(range.last, key);
  }
  add_number(std::ssize(node.parts), key);
  for (const NodePointer& part : node.parts) add_node(*part, key);
  for (const uint8_t required : node.required) key += required != 0 ? '1' : '0';
  key += node.extra != nullptr ? '+' : '-';
  if (node.extra != nullptr) add_node(*node.extra, key);
  constexpr size_t kLongestKey = size_t{1} << 24;
  if (key.size() > kLongestKey) bad_input("the structure is too large: use fewer or smaller parts");
}

}  // namespace

std::string structure_key(const Node& node) {
  std::string key;
  add_node(node, key);
  return key;
}

}  // namespace verbatim
