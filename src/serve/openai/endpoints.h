#pragma once

#include <memory>
#include <string_view>

#include "serve/context.h"
#include "serve/fields.h"

// OpenAI's endpoints, and llama-server's for tokens.

namespace verbatim::serve {

void list_models(const Context& context, const std::shared_ptr<Call>& call);
/// `id` is the rest of the path, percent-encoded.
void show_model(const Context& context, const std::shared_ptr<Call>& call, std::string_view id);
void completions(const Context& context, const std::shared_ptr<Call>& call);
void chat_completions(const Context& context, const std::shared_ptr<Call>& call);
void embeddings(const Context& context, const std::shared_ptr<Call>& call);
void tokenize(const Context& context, const std::shared_ptr<Call>& call);
void detokenize(const Context& context, const std::shared_ptr<Call>& call);
/// The server's state for its page, which is no interface of OpenAI's.
void show_stats(const Context& context, const std::shared_ptr<Call>& call);

// The fields of the endpoints' requests, for docs/server-fields.md and for tests.
extern const FieldTable kCompletionsFields;
extern const FieldTable kChatFields;
extern const FieldTable kChatMessageFields;
extern const FieldTable kChatPartFields;
extern const FieldTable kChatToolFields;
extern const FieldTable kChatFunctionFields;
extern const FieldTable kResponseFormatFields;
extern const FieldTable kJsonSchemaFields;
extern const FieldTable kStreamOptionsFields;
extern const FieldTable kEmbeddingsFields;
extern const FieldTable kTokenizeFields;
extern const FieldTable kDetokenizeFields;

}  // namespace verbatim::serve
