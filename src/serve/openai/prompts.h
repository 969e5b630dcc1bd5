#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "serve/fields.h"
#include "verbatim/verbatim.h"

namespace verbatim::serve {

/// A prompt as a request gives it: a text, or tokens.
using Prompt = std::variant<std::string, std::vector<int32_t>>;

/// The prompts of a field that is a string, a list of strings, a list of tokens or a list of such lists.
/// Throws HttpError(400) for anything else, for no prompts and for more than 2048.
std::vector<Prompt> read_prompts(const Fields& fields, std::string_view name);

/// The tokens of a prompt: a text's with a beginning-of-sequence token if the model wants one, or as given.
/// Throws HttpError(400), naming `field`, for tokens outside the vocabulary and for nothing at all.
std::vector<int32_t> tokens_of(const Model& model, const Prompt& prompt, const std::string& field);

/// The tokens that ask a model for what stands between two texts. Throws HttpError(400) for a model without
/// tokens for that.
std::vector<int32_t> fill_in_prompt(const Model& model, std::string_view prefix, std::string_view suffix);

/// The tokens beside the model's own that end what was filled in.
std::vector<int32_t> fill_in_ends(const Model& model);

}  // namespace verbatim::serve
