#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace verbatim {

/// How a model is packed into a file.
struct PackOptions {
  /// The formats to pack every matrix into, by name, each of them once; "full" is the model's own type, and
  /// "draft" a copy in "mxfp4" of matrices in which the other formats hold no draft.
  std::vector<std::string> formats = {"full", "mxfp4"};
  /// A .safetensors file with the loss's sensitivity to each weight, for the formats `squeeze3` and
  /// `squeeze4`; empty: none.
  std::filesystem::path sensitivities = {};
  /// For `squeeze3` and `squeeze4`: the share of a matrix's weights, the most sensitive ones, that the sparse
  /// part keeps.
  double sparse_sensitive = 0.0005;
  /// For `squeeze3` and `squeeze4`: the share of a matrix's weights, the largest ones but the most sensitive,
  /// that the sparse part keeps. Without sensitivities it keeps the largest, as many as both shares make.
  double sparse_outliers = 0.004;
  /// For `squeeze3` and `squeeze4`: whether the share of the largest weights is one of the whole model, not
  /// of each matrix. Then a weight is kept apart if it lies farther outside the quartiles of its matrix,
  /// measured by their distance, than a number that is the same for all matrices; one with longer tails keeps
  /// more.
  bool outliers_across_model = false;
  /// Threads to pack with; 0 takes one for every core that this process may use. Changes no byte of the file.
  int32_t threads = 0;
  /// Called now and then with the fraction done, from 0 to 1, on the calling thread.
  std::function<void(double)> progress = {};
  /// Asked between matrices; true ends the work and leaves no file behind.
  std::function<bool()> cancelled = {};
};

/// A packed file that was written.
struct PackReport {
  int64_t bytes = 0;                  ///< the size of the file
  std::vector<std::string> formats;   ///< the formats that every matrix is in, by name
  std::vector<std::string> warnings;  ///< things about the model that deserve attention, a line each
};

/// Packs a directory in Hugging Face layout or a .gguf file into one new file, which Model::load() maps
/// instead of packing it again, and which holds the vocabulary too. One matrix is in memory at a time, so
/// that the model may be larger than the memory. The same model and formats give the same bytes. Returns
/// nothing if the work was cancelled. A cancellation or a failure leaves no file behind.
///
/// Throws Error(kBadInput) when the model is malformed or is packed already, when sensitivities are another
/// model's, when there is no format of a name or a format cannot hold the weights, and when no file can be
/// made there; Error(kUsage) when a format is asked for twice, or a share is not between 0 and 1 or no format
/// has a sparse part; Error(kMachine) when writing fails.
std::optional<PackReport> pack_model(const std::filesystem::path& model, const std::filesystem::path& file,
                                     const PackOptions& options = {});

}  // namespace verbatim
