#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/sha256.h"
#include "engine/model_data.h"

namespace verbatim {

// What tells models apart whose keys and values differ, for files that hold keys and values.

/// A number that differs between models that give different keys and values, as far as the config, the
/// beginning of the embedding, and how exact the stored weights are can tell. It takes no time.
uint64_t quick_fingerprint(const ModelData& model);
/// A digest of all that keys and values in a reading depend on beside the tokens: the config, every weight
/// that the reading reads, the version of the library, and how this machine rounds, as the hidden states of
/// some tokens show. It reads these weights once and evaluates a pass. Throws Error(kUsage) if the model has
/// no weights for the reading.
Digest digest_of(const ModelData& model, Reading reading);

/// A text as a field of a file, padded with zeros. Throws Error(kUsage) if it is too long.
template <size_t kSize>
std::array<char, kSize> text_field(std::string_view text) {
  if (text.size() >= kSize) fail(ErrorKind::kUsage, "\"{}\" is too long a name to save", text);
  std::array<char, kSize> field = {};
  std::copy(text.begin(), text.end(), field.begin());
  return field;
}

/// The text of such a field.
template <size_t kSize>
std::string text_of(const std::array<char, kSize>& field) {
  return {field.begin(), std::find(field.begin(), field.end(), '\0')};
}

}  // namespace verbatim
