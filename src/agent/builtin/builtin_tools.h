#pragma once

#include <filesystem>
#include <memory>

#include "agent/tools/tool.h"

namespace verbatim::agent {

/// `math(expression)`: the value of an arithmetic expression.
ToolEntry math_tool(Loop& loop);

/// `search(query, count)`: what a local corpus says. The file has a JSON object on each line with a `title`
/// and a `text`, or is an SQLite database with an FTS5 table `documents(title, text)`. Throws
/// Error(kBadInput) for a file that is neither.
ToolEntry search_tool(Loop& loop, const std::filesystem::path& corpus);

/// `read_file(path)`: the text of a file below a folder, which no path leaves, whatever links it goes through
/// and whoever changes them meanwhile. Throws Error(kBadInput) if the folder cannot be opened.
ToolEntry read_file_tool(Loop& loop, const std::filesystem::path& root);

}  // namespace verbatim::agent
