#include "serve/openai/common_fields.h"

#include "serve/openai/endpoints.h"

namespace verbatim::serve {

namespace {

constexpr Field kCommonTable[] = {
    {.name = "include_usage",
     .type = FieldType::kBoolean,
     .note = "true: a last chunk without choices has `usage`, and the others have it as null"},
    {.name = "include_obfuscation",
     .type = FieldType::kBoolean,
     .use = FieldUse::kOnly,
     .note = "chunks have no padding against eavesdroppers",
     .accepted = "false"},
};

}  // namespace

const FieldTable kStreamOptionsFields = kCommonTable;

bool read_include_usage(const Fields& fields) {
  const std::optional<Fields> options = fields.object("stream_options", kStreamOptionsFields);
  if (!options) return false;
  if (!fields.boolean("stream").value_or(false)) {
    fields.refuse("stream_options", "is for requests with stream: true", "invalid_value");
  }
  return options->boolean("include_usage").value_or(false);
}

}  // namespace verbatim::serve
