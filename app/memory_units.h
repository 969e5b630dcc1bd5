#pragma once

#include <cstdint>
#include <string>

namespace verbatim::app {

/// The most memory this process has had resident, in bytes.
int64_t peak_resident_bytes();

/// A number of bytes for people: "1.50 MB".
std::string human_bytes(double bytes);
std::string human_bytes(int64_t bytes);

/// A whole number for people, in groups of three digits: "25,698,816".
std::string grouped(int64_t number);

}  // namespace verbatim::app
