#pragma once

#include <functional>

#include "verbatim/verbatim.h"
#include "verbatim/verbatim_c.h"

namespace verbatim::capi {

/// What the caller says of loading, as the C++ interface takes it; the defaults for NULL.
ModelOptions options_of(const verbatim_load_options* given);
EngineOptions options_of(const verbatim_engine_options* given);
ScoreOptions options_of(const verbatim_score_options* given);

/// What is to be generated: a request without a prompt. A session has no use for its priority, deadline and
/// notify.
Request request_of(const verbatim_generate_options* given);

/// The recipe that a caller names; NULL: auto.
Recipe recipe_of(const char* name);

/// A progress callback that throws GivenUp when the caller's own says so; empty for NULL.
std::function<void(double)> progress_of(verbatim_progress progress, void* user);

}  // namespace verbatim::capi
