#pragma once

#include <memory>

#include "serve/context.h"
#include "serve/fields.h"

// Anthropic's endpoints.

namespace verbatim::serve {

/// POST /v1/messages
void messages(const Context& context, const std::shared_ptr<Call>& call);
/// POST /v1/messages/count_tokens
void count_message_tokens(const Context& context, const std::shared_ptr<Call>& call);

// The fields of the endpoints' requests, for docs/server-fields.md and for tests.
extern const FieldTable kMessagesFields;
extern const FieldTable kCountTokensFields;
extern const FieldTable kMessagesMessageFields;
extern const FieldTable kTextBlockFields;
extern const FieldTable kToolUseBlockFields;
extern const FieldTable kToolResultBlockFields;
extern const FieldTable kMessagesToolFields;
extern const FieldTable kMessagesToolChoiceFields;
extern const FieldTable kThinkingFields;
extern const FieldTable kOutputConfigFields;
extern const FieldTable kOutputFormatFields;

}  // namespace verbatim::serve
