#pragma once

#include <string>

namespace verbatim::app {

/// What `--version` prints: the program's name and version, the commit and the compiler it was built from and
/// with, and the kernels that it uses on this machine.
std::string version_text();

/// The commit that the program was built from, with "-dirty" behind it where files differed from it;
/// "unknown" for a build outside a repository.
const char* built_from_commit();

}  // namespace verbatim::app
