#pragma once

#include <array>

#include "serve/fields.h"
#include "verbatim/verbatim.h"

namespace verbatim::serve {

/// The fields of sampling that OpenAI's endpoints have in common; Anthropic's have some of them.
inline constexpr std::array kSamplingFields = {
    Field{.name = "temperature",
          .type = FieldType::kNumber,
          .note = "divides the logits; 0 takes the likeliest token. 1 if it is absent",
          .least = 0,
          .most = 2},
    Field{.name = "top_p",
          .type = FieldType::kNumber,
          .note = "keeps the likeliest tokens that together reach this probability; 1 (all) if it is absent",
          .least = 0,
          .most = 1},
    Field{.name = "top_k",
          .type = FieldType::kInteger,
          .note = "keeps this many of the likeliest tokens; 0 and -1 keep all",
          .least = -1,
          .most = 1e9},
    Field{.name = "min_p",
          .type = FieldType::kNumber,
          .note = "keeps tokens at least this fraction as likely as the likeliest one",
          .least = 0,
          .most = 1},
    Field{.name = "presence_penalty",
          .type = FieldType::kNumber,
          .note = "is subtracted from the logits of tokens that were generated",
          .least = -2,
          .most = 2},
    Field{.name = "frequency_penalty",
          .type = FieldType::kNumber,
          .note = "is subtracted from a token's logit as many times as it was generated",
          .least = -2,
          .most = 2},
    Field{.name = "repetition_penalty",
          .type = FieldType::kNumber,
          .note = "divides or multiplies the logits of tokens in prompt and answer; 1 is off",
          .least = 0.01,
          .most = 100},
    Field{.name = "logit_bias",
          .type = FieldType::kObject,
          .note = "numbers from -100 to 100 to add to logits, by token ids as keys; -100 rules a token out"},
    Field{.name = "seed",
          .type = FieldType::kInteger,
          .note =
              "the same seed gives the same answer, with any lossless recipe and under any load; choice i "
              "has the seed + i. If it is absent, one is drawn and told as verbatim.seed",
          .least = -9e15,
          .most = 9e15},
    Field{.name = "stop",
          .type = FieldType::kTextOrTexts,
          .note = "up to four texts before the first of which the answer ends"},
};

/// Two lists of fields as one.
template <size_t A, size_t B>
constexpr std::array<Field, A + B> joined(const std::array<Field, A>& first,
                                          const std::array<Field, B>& second) {
  std::array<Field, A + B> all;
  for (size_t i = 0; i < A; ++i) all[i] = first[i];
  for (size_t i = 0; i < B; ++i) all[A + i] = second[i];
  return all;
}

/// The sampling that a request asks for, with OpenAI's defaults and a seed that is drawn where it has none.
/// Fields that the endpoint's table lacks count as absent. Throws HttpError(400).
SamplingOptions read_sampling(const Fields& fields, const Model& model);

/// The texts of the field `name` that end an answer. Throws HttpError(400) for an empty one or more than
/// four.
std::vector<std::string> read_stop(const Fields& fields, std::string_view name = "stop");

}  // namespace verbatim::serve
