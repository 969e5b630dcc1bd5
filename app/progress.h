#pragma once

#include <string>

namespace verbatim::app {

/// Shows progress on stderr. On a terminal it is a bar, drawn after the first second; a bar of another name
/// takes its place. Elsewhere it is one line after ten seconds, saying what is going on.
void show_progress(const std::string& what, double fraction);
/// The bar of Session::prepare().
void show_measuring(double fraction);
/// The bar of GenerateOptions::prefill_progress. It removes itself when the prompt is read.
void show_reading(double fraction);
/// Removes the bar.
void end_progress();

}  // namespace verbatim::app
