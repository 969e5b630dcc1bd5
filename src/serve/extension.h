#pragma once

#include <optional>
#include <string>

#include "serve/fields.h"

namespace verbatim::serve {

/// What the member `verbatim` of a request asks for.
struct Extension {
  bool present = false;     ///< whether the request had the member at all
  std::string recipe = {};  ///< its name; empty: the server's
  bool speculation = true;
  bool origins = false;
};

/// The fields of the member `verbatim`.
extern const FieldTable kExtensionFields;

/// Reads the member `verbatim` of a request, which `fields` has as an object field of that name. Throws
/// HttpError(400) for origins where the answer, by `tells_origins`, has no place to tell them.
Extension read_extension(const Fields& fields, bool tells_origins);

}  // namespace verbatim::serve
