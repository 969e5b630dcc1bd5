#include "formats/reading.h"

#include "base/error.h"

namespace verbatim {

std::string_view reading_name(Reading reading) {
  switch (reading) {
    case Reading::kFull:
      return "full";
    case Reading::kMxfp4W4A16:
      return "mxfp4-w4a16";
    case Reading::kMxfp4W4A8:
      return "mxfp4-w4a8";
  }
  return "unknown";
}

Reading parse_reading(std::string_view name, std::string_view where) {
  for (const Reading reading : {Reading::kFull, Reading::kMxfp4W4A16, Reading::kMxfp4W4A8}) {
    if (name == reading_name(reading)) return reading;
  }
  bad_input("{}: unknown reading \"{}\"; known are full, mxfp4-w4a16 and mxfp4-w4a8", where, name);
}

}  // namespace verbatim
