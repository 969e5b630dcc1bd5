#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

// The formats that weights are packed into and the readings of them are known by their names
// (docs/formats.md).

/// The names of the formats that weights can be packed into: "bf16", "mxfp4", ... The names "full"
/// and "draft" are not among them; wherever formats are asked for, these stand for the format of a model's
/// own type and for what each matrix can draft with (ModelOptions::formats).
std::vector<std::string> format_names();

/// Throws Error(kBadInput), naming `where` and the known formats, unless a format has this name.
void require_format(std::string_view name, std::string_view where);

/// The name of the format that the reading with a name reads: "mxfp4" for "mxfp4-w4a8"; "full" and
/// "draft" for these. Throws Error(kBadInput), naming `where` and the known readings, if there is no such
/// reading.
std::string format_of_reading(std::string_view reading, std::string_view where);

}  // namespace verbatim
