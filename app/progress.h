#pragma once

#include <string>

namespace verbatim::app {

/// A progress bar on stderr: nothing unless that is a terminal, and nothing in the first second of it. A bar
/// of another name takes its place.
void show_progress(const std::string& what, double fraction);
/// The bar of Session::prepare().
void show_measuring(double fraction);
/// The bar of GenerateOptions::prefill_progress. It removes itself when the prompt is read.
void show_reading(double fraction);
/// Removes the bar.
void end_progress();

}  // namespace verbatim::app
