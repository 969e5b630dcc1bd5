#pragma once

#include <cstdint>
#include <string>

namespace verbatim::app {

/// The most memory this process has had resident, in bytes.
int64_t peak_resident_bytes();

/// A number of bytes for people: "1.50 MB".
std::string human_bytes(double bytes);

}  // namespace verbatim::app
