#pragma once

// The whole public API.

#include "verbatim/engine.h"
#include "verbatim/error.h"
#include "verbatim/generate.h"
#include "verbatim/model.h"
#include "verbatim/perplexity.h"
#include "verbatim/recipe.h"
#include "verbatim/sampling.h"

namespace verbatim {

/// "0.1.0"
const char* version();

}  // namespace verbatim
