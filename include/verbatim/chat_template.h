#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "verbatim/model.h"

namespace verbatim {

/// A stretch of a rendered prompt.
struct PromptPart {
  std::string text;
  /// Whether the text was written by the template's author, so that special tokens spelled out in it
  /// ("<|im_start|>") are meant as such. Text that came from a message is plain text, whatever it spells.
  bool from_template = false;

  bool operator==(const PromptPart&) const = default;
};

/// A chat template in Jinja, as models bring one along to say how a conversation is written for them. It is
/// parsed once and rendered by an interpreter of the part of the language that such templates use: it reaches
/// no file and no other program, and its steps, its depth and its output are bounded, so a hostile template
/// ends in an error. A ChatTemplate is immutable and cheap to copy; any number of threads may render at once.
class ChatTemplate {
 public:
  /// Parses a template. Throws Error(kBadInput), with the line, for what is no template or uses something
  /// that the interpreter does not know.
  explicit ChatTemplate(std::string_view source);

  /// The template that a model's files bring along, or else a built-in one for the chat format that
  /// detect_chat_format() finds, which knows tools too. Throws Error(kBadInput) if the model's own template
  /// cannot be parsed or the model has no vocabulary.
  static ChatTemplate of(const Model& model);
  /// The built-in template of a chat format (chat_format_names()). Throws Error(kUsage), listing the names,
  /// if there is none.
  static ChatTemplate built_in(std::string_view format);

  /// Renders a conversation. `variables` is a JSON object with the template's variables: `messages`, a list
  /// of objects, and usually `tools`, `add_generation_prompt`, and whatever else the template reads. The
  /// tokens' spellings `bos_token`, `eos_token` and so on are the model's if `model` is given, and count as
  /// the template's own text. Neighbouring parts differ in `from_template`. Throws Error(kBadInput) with the
  /// message that the template raised, or with the line and the reason why it cannot be rendered.
  std::vector<PromptPart> render(std::string_view variables, const Model* model = nullptr) const;

  /// The template's text.
  const std::string& source() const;
  /// Whether it is the model's own, and not a built-in one.
  bool own() const;
  /// Whether the template reads the variable of this name ("tools", say).
  bool reads(std::string_view variable) const;

 private:
  struct Program;
  explicit ChatTemplate(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

/// The tokens of a rendered prompt. Special tokens are recognized only where they are the template's own
/// text. A beginning-of-sequence token is added if `add_bos`, the model wants one, and the prompt does not
/// begin with one. Throws Error(kBadInput) for text that is not UTF-8.
std::vector<int32_t> encode(const Model& model, const std::vector<PromptPart>& prompt, bool add_bos = true);

}  // namespace verbatim
