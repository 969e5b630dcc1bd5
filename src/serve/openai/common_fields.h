#pragma once

#include <array>

#include "serve/sampling_fields.h"

namespace verbatim::serve {

/// The fields that both of OpenAI's endpoints of generation have beside those of sampling.
inline constexpr std::array kGenerationFields =
    joined(kSamplingFields,
           std::array{
               Field{.name = "model",
                     .type = FieldType::kText,
                     .note = "the name of a model that the server has; the first one if it is absent"},
               Field{.name = "n",
                     .type = FieldType::kInteger,
                     .note = "choices for a prompt; 1 if it is absent. A request has no more of them in all "
                             "than may run and wait",
                     .least = 1,
                     .most = 128},
               Field{.name = "stream",
                     .type = FieldType::kBoolean,
                     .note = "answers with server-sent events as the text comes"},
               Field{.name = "stream_options",
                     .type = FieldType::kObject,
                     .note = "with `stream` only; its fields are below"},
               Field{.name = "verbatim",
                     .type = FieldType::kObject,
                     .note = "this server's own; its fields are below"},
               Field{.name = "user",
                     .type = FieldType::kText,
                     .use = FieldUse::kHarmless,
                     .note = "names the end user to whoever runs the server; no answer depends on it"},
           });

/// A field that tells who asks or what for, on which no answer depends.
constexpr Field label(std::string_view name, FieldType type) {
  return {.name = name,
          .type = type,
          .use = FieldUse::kHarmless,
          .note = "a label for whoever runs the server; no answer depends on it"};
}

/// Whether a stream's last chunk counts tokens. Throws HttpError(400) for stream options without a stream.
bool read_include_usage(const Fields& fields);

}  // namespace verbatim::serve
