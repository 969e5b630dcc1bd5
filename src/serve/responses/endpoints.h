#pragma once

#include <memory>
#include <string_view>

#include "serve/context.h"
#include "serve/fields.h"

// OpenAI's Responses.

namespace verbatim::serve {

/// POST /v1/responses
void responses(const Context& context, const std::shared_ptr<Call>& call);
/// GET /v1/responses/{id}
void show_response(const Context& context, const std::shared_ptr<Call>& call, std::string_view id);
/// DELETE /v1/responses/{id}
void delete_response(const Context& context, const std::shared_ptr<Call>& call, std::string_view id);

// The fields of the endpoint's requests, for docs/server-fields.md and for tests.
extern const FieldTable kResponsesFields;
extern const FieldTable kInputMessageFields;
extern const FieldTable kInputPartFields;
extern const FieldTable kInputCallFields;
extern const FieldTable kInputResultFields;
extern const FieldTable kInputReasoningFields;
extern const FieldTable kInputListedFields;
extern const FieldTable kInputRunCallFields;
extern const FieldTable kResponsesServerFields;
extern const FieldTable kResponsesToolFields;
extern const FieldTable kResponsesToolChoiceFields;
extern const FieldTable kResponsesTextFields;
extern const FieldTable kTextFormatFields;
extern const FieldTable kReasoningFields;
extern const FieldTable kResponsesStreamFields;

}  // namespace verbatim::serve
