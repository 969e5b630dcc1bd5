#pragma once

#include <memory>

#include "model.h"

namespace verbatim::python {

/// A conversation at one moment. Messages and replies make further ones of it, so that a message whose reply
/// fails leaves nothing behind.
struct Talk {
  std::shared_ptr<LoadedModel> model;
  Chat chat;
};

}  // namespace verbatim::python
