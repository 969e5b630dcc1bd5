#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// A set of texts that a reply is held to, whatever the model would rather say: those of a JSON schema, say.
/// GenerateOptions::structure rules out every token after which the reply could not become one of these
/// texts, and the end of the sequence before it is one. Drafted and plain tokens are held to it alike, so a
/// structured reply has the same bytes with every lossless recipe. Where the structure leaves one text only,
/// this text must be written with the tokens that the tokenizer gives for it, and is drafted without asking
/// the model, by every recipe that drafts; its last token is free where other text can follow.
///
/// Structures are put together from smaller ones. They are immutable and cheap to copy.
class Structure {
 public:
  /// The text itself.
  static Structure text(std::string_view text);
  /// The special token that the vocabulary spells like this ("[TOOL_CALLS]"), where a model has it, and the
  /// text otherwise.
  static Structure special(std::string_view spelling);
  /// Any text of any length, in UTF-8, in which none of `without` occurs. No string may be empty.
  static Structure free_text(std::vector<std::string> without = {});
  /// A JSON value that a schema allows, written as `json.dumps` of Python writes it by default except that
  /// characters beyond ASCII may stand for themselves: a space after each comma and colon, no other white
  /// space, and an object's properties in the schema's order. The schema is a JSON text; docs/structure.md
  /// lists the keywords. Throws Error(kBadInput), naming the place in the schema, for a schema that is not
  /// valid or uses an unknown keyword, and for one that allows nothing or is too large.
  static Structure json_schema(std::string_view schema);
  /// Any JSON object, written as json_schema() writes values.
  static Structure json_object();
  /// The texts of a regular expression (docs/structure.md says which are known), from beginning to end.
  /// Throws Error(kBadInput).
  static Structure regex(std::string_view pattern);

  /// One after the other.
  static Structure sequence(std::vector<Structure> parts);
  /// Any one of these.
  static Structure choice(std::vector<Structure> parts);
  /// From `least` to `most` times the same structure (not the same text), with `separator` between them;
  /// `most` -1: without end.
  static Structure repeat(Structure part, int least, int most = -1, std::string_view separator = {});

  struct Node;
  explicit Structure(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  const std::shared_ptr<const Node>& node() const { return node_; }

 private:
  std::shared_ptr<const Node> node_;
};

}  // namespace verbatim
