#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "verbatim/model.h"

namespace verbatim::python {

/// The bytes of a str in UTF-8. What has no place in UTF-8, such as a half of a surrogate pair, keeps its
/// bytes, so that the library refuses it in its own words. Throws TypeError, naming the argument, for
/// anything else.
std::string text_of(pybind11::handle value, const char* name);
/// A str of bytes in UTF-8; bytes that are none become U+FFFD.
pybind11::str str_of(std::string_view text);
/// A path from a str, bytes or an object with __fspath__.
std::filesystem::path path_of(pybind11::handle value, const char* name);

/// A whole number from `least` to `most`. Throws TypeError for what is none, bool included, and Error(kUsage)
/// for one out of range.
int64_t whole_of(pybind11::handle value, const char* name, int64_t least = INT64_MIN,
                 int64_t most = INT64_MAX);
/// A whole number from 0 to 2^64 - 1.
uint64_t unsigned_of(pybind11::handle value, const char* name);
/// A number, NaN and infinity included. Throws TypeError for what is none.
double number_of(pybind11::handle value, const char* name);
/// True or False, and nothing else.
bool truth_of(pybind11::handle value, const char* name);

/// The elements of a sequence of str, or the one str. Throws TypeError for anything else.
std::vector<std::string> texts_of(pybind11::handle value, const char* name);
/// A sequence of token ids. Throws TypeError for anything else, Error(kUsage) for ids that no vocabulary has.
std::vector<int32_t> tokens_of(pybind11::handle value, const char* name);
/// The tokens of a prompt: those of a text, behind the token that begins a sequence if `begins` and the model
/// wants it, or a sequence of token ids as it stands.
std::vector<int32_t> prompt_of(const Model& model, pybind11::handle value, const char* name,
                               bool begins = true);

}  // namespace verbatim::python
