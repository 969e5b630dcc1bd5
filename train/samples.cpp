#include "samples.h"

#include "base/error.h"
#include "base/philox.h"

namespace verbatim::train {

std::vector<std::vector<int32_t>> choose_samples(std::span<const int32_t> text, std::optional<int32_t> bos,
                                                 const SampleOptions& options, const std::string& where) {
  if (options.samples < 1) fail(ErrorKind::kUsage, "at least one sample is needed");
  if (options.length < 2) {
    fail(ErrorKind::kUsage, "a sample of {} token{} predicts nothing: at least 2 are needed", options.length,
         options.length == 1 ? "" : "s");
  }
  const int64_t taken = options.length - (bos ? 1 : 0);
  if (std::ssize(text) < taken) {
    bad_input(
        "{} has {} token{}, but a sample takes {}: give a longer text, or shorter samples with --length",
        where, text.size(), text.size() == 1 ? "" : "s", taken);
  }
  const uint64_t places = static_cast<uint64_t>(std::ssize(text) - taken) + 1;
  std::vector<std::vector<int32_t>> samples;
  for (int64_t i = 0; i < options.samples; ++i) {
    const auto words =
        philox({static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32), 0, 0},
               {static_cast<uint32_t>(options.seed), static_cast<uint32_t>(options.seed >> 32)});
    const uint64_t place = (uint64_t{words[0]} << 32 | words[1]) % places;
    std::vector<int32_t>& sample = samples.emplace_back();
    if (bos) sample.push_back(*bos);
    const std::span<const int32_t> piece =
        text.subspan(static_cast<size_t>(place), static_cast<size_t>(taken));
    sample.insert(sample.end(), piece.begin(), piece.end());
  }
  return samples;
}

}  // namespace verbatim::train
