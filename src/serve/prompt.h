#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/conversation.h"

namespace verbatim::serve {

/// The variables that a chat template is rendered with, as a JSON text: the question's messages and tools in
/// the members that templates read, and its template_variables. Where the template knows no tools, or writes
/// calls in a way that `style` is not, they are told in the system message and calls and results are written
/// out as text, so that every model can be given tools. Tools that must not be called are not told.
std::string render_variables(const Question& question, const ChatTemplate& chat_template, ToolStyle style);

/// The tokens of a conversation as a chat template writes it, with the reply about to begin, or begun with
/// the text `begun`. Throws HttpError(400) for the field `messages`, with the template's own words, for what
/// the template refuses.
std::vector<int32_t> conversation_tokens(const Question& question, const Model& model,
                                         const ChatTemplate& chat_template, ToolStyle style,
                                         const std::string& begun = {});

/// The control tokens that calls are marked with and whose spellings ReplyParser wants to see in a reply's
/// text, if the question has tools.
std::vector<int32_t> shown_marks(const Question& question, const Model& model, ToolStyle style);

/// Adds what ends a reply of a model in its chat format, besides the model's own end of text.
void add_reply_ends(const Model& model, GenerateOptions& options);

}  // namespace verbatim::serve
