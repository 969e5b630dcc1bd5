#include "fisher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>

#include "base/available_memory.h"
#include "base/error.h"
#include "base/new_file.h"
#include "base/sha256.h"
#include "container/config_json.h"
#include "graph_library.h"
#include "host_weights.h"
#include "in_order.h"

#include "model/sensitivity_origin.h"
#include "tensor_rows.h"
#include "work_folder.h"

namespace verbatim::train {

namespace {

/// "1.5 GiB"; in MiB what is less than one.
std::string size_text(double bytes) {
  constexpr double kMiB = 1024.0 * 1024.0;
  const bool large = bytes >= 1024.0 * kMiB;
  return fmt::format("{:.1f} {}", bytes / (large ? 1024.0 * kMiB : kMiB), large ? "GiB" : "MiB");
}

int64_t matrix_weights(const ModelConfig& config, int32_t layer) {
  return weights_of(sensitivity_entries(config, layer));
}

int64_t threads_at_work(const FisherOptions& options) {
  return std::min<int64_t>(options.threads, options.samples.samples);
}

/// What sequences, a model and settings are, so that work on others is not taken up.
std::string identity_of(const Checkpoint& checkpoint, const std::vector<std::vector<int32_t>>& samples,
                        const FisherOptions& options) {
  Sha256 sum;
  for (const std::string& text : {config_json(checkpoint.config).dump(), sketch_text(checkpoint),
                                  options.text_digest, fmt::format(" {}", options.output_matrix)}) {
    sum.add(std::as_bytes(std::span(text)));
  }
  for (const std::vector<int32_t>& sample : samples) sum.add(std::as_bytes(std::span(sample)));
  return hexadecimal(sum.digest());
}

/// The work on one file.
class Work {
 public:
  Work(const Checkpoint& checkpoint, const std::vector<std::vector<int32_t>>& samples,
       const std::filesystem::path& file, const FisherOptions& options)
      : checkpoint_(checkpoint),
        config_(checkpoint.config),
        samples_(samples),
        options_(options),
        rows_(std::ssize(samples.front()) - 1),
        sample_size_(rows_ * config_.hidden_size),
        stream_size_(sample_size_ * std::ssize(samples)),
        team_(options.threads),
        folder_(file, identity_of(checkpoint, samples, options), config_.layers, options.resume) {}

  bool forward();
  bool backward();
  FisherReport finish(const std::filesystem::path& file);

 private:
  std::vector<float> stream(int64_t layer, int64_t sample) {
    std::vector<float> values(static_cast<size_t>(sample_size_));
    folder_.streams().read(layer * stream_size_ + sample * sample_size_, values);
    return values;
  }
  void put_stream(int64_t layer, int64_t sample, std::span<const float> values) {
    folder_.streams().write(layer * stream_size_ + sample * sample_size_, values);
  }
  std::span<const int32_t> inputs(int64_t sample) const {
    return std::span(samples_[static_cast<size_t>(sample)]).first(static_cast<size_t>(rows_));
  }
  std::span<const int32_t> targets(int64_t sample) const {
    return std::span(samples_[static_cast<size_t>(sample)]).subspan(1);
  }

  /// Does work for every sample on all threads; returns whether it was completed. `done` and `steps` say how
  /// much of a stage that is.
  bool each_sample(const char* stage, int32_t done, int32_t steps,
                   const std::function<void(InOrder&, int64_t)>& work);
  bool backward_from_loss(SquareSums& sums);
  bool backward_through(int32_t layer, SquareSums& sums);
  void refuse_not_finite(const SquareSums& sums) const;
  /// The layer that step `step` backward, from 1 on, completes; -1 for the loss.
  int32_t layer_of(int32_t step) const { return step == 1 ? -1 : config_.layers + 1 - step; }
  /// The place of the sensitivities of that step among all.
  int64_t place_of(int32_t step) const;

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const std::vector<std::vector<int32_t>>& samples_;
  const FisherOptions& options_;
  int64_t rows_;
  int64_t sample_size_;
  int64_t stream_size_;
  ThreadTeam team_;
  WorkFolder folder_;
  std::mutex progress_mutex_;
  double loss_ = 0.0;  // the sum over samples
};

bool Work::each_sample(const char* stage, int32_t done, int32_t steps,
                       const std::function<void(InOrder&, int64_t)>& work) {
  InOrder order(std::ssize(samples_));
  const auto one = [&](int64_t sample) {
    work(order, sample);
    if (!options_.progress) return;
    const double fraction =
        (done + static_cast<double>(sample) / static_cast<double>(samples_.size())) / steps;
    const std::lock_guard lock(progress_mutex_);
    options_.progress(stage, fraction);
  };
  return order.run(options_.threads, one, options_.cancelled);
}

bool Work::forward() {
  Progress progress = folder_.progress();
  if (progress.forward == 0 && progress.backward == 0) {
    const std::vector<float> positions = read_positions(checkpoint_);
    for (int64_t sample = 0; sample < std::ssize(samples_); ++sample) {
      put_stream(0, sample, embed<float>(checkpoint_, positions, inputs(sample)));
    }
  }
  for (int32_t layer = progress.forward; layer < config_.layers; ++layer) {
    const HostWeights<float> weights = read_host_weights<float>(checkpoint_, layer, rows_, team_);
    const auto graph = graph_maker<float>().layer(config_, weights);
    const bool complete =
        each_sample("forward through the layers", layer, config_.layers, [&](InOrder&, int64_t sample) {
          const std::vector<float> before = stream(layer, sample);
          std::vector<float> after(before.size());
          graph->forward(before, after);
          put_stream(layer + 1, sample, after);
        });
    if (!complete) return false;
    progress.forward = layer + 1;
    folder_.note(progress);
  }
  return true;
}

bool Work::backward_from_loss(SquareSums& sums) {
  const HostWeights<float> weights = read_host_weights<float>(checkpoint_, -1, rows_, team_);
  const auto graph = graph_maker<float>().loss(config_, weights);
  loss_ = 0.0;
  return each_sample(
      "backward through the layers", 0, config_.layers + 1, [&](InOrder& order, int64_t sample) {
        std::vector<float> gradient(static_cast<size_t>(sample_size_));
        const GradientSink<float> sink = [&](const std::string& name, std::span<const float> values) {
          if (order.wait_for_turn(sample)) sums.add(name, values);
        };
        const double loss = graph->backward(stream(config_.layers, sample), targets(sample), gradient,
                                            options_.output_matrix ? sink : GradientSink<float>());
        if (!std::isfinite(loss)) {
          bad_input("the loss of sample {} is no finite number: {} gives logits that are none", sample,
                    checkpoint_.path.string());
        }
        folder_.gradients(1).write(sample * sample_size_, gradient);
        if (order.wait_for_turn(sample)) loss_ += loss;
      });
}

bool Work::backward_through(int32_t layer, SquareSums& sums) {
  const int32_t step = config_.layers + 1 - layer;
  const HostWeights<float> weights = read_host_weights<float>(checkpoint_, layer, rows_, team_);
  const auto graph = graph_maker<float>().layer(config_, weights);
  return each_sample("backward through the layers", step - 1, config_.layers + 1,
                     [&](InOrder& order, int64_t sample) {
                       std::vector<float> gradient(static_cast<size_t>(sample_size_));
                       folder_.gradients(step - 1).read(sample * sample_size_, gradient);
                       graph->backward(stream(layer, sample), gradient, gradient,
                                       [&](const std::string& name, std::span<const float> values) {
                                         if (order.wait_for_turn(sample)) sums.add(name, values);
                                       });
                       folder_.gradients(step).write(sample * sample_size_, gradient);
                     });
}

void Work::refuse_not_finite(const SquareSums& sums) const {
  for (size_t i = 0; i < sums.entries().size(); ++i) {
    if (std::ranges::all_of(sums.values(i), [](float value) { return std::isfinite(value); })) continue;
    bad_input("{}: the squared gradient of tensor {} is not finite", checkpoint_.path.string(),
              sums.entries()[i].name);
  }
}

int64_t Work::place_of(int32_t step) const {
  int64_t place = 0;
  for (int32_t before = 1; before < step; ++before) {
    if (before > 1 || options_.output_matrix) place += matrix_weights(config_, layer_of(before));
  }
  return place;
}

bool Work::backward() {
  Progress progress = folder_.progress();
  for (int32_t step = progress.backward + 1; step <= config_.layers + 1; ++step) {
    const int32_t layer = layer_of(step);
    SquareSums sums(config_, layer);
    if (!(layer < 0 ? backward_from_loss(sums) : backward_through(layer, sums))) return false;
    if (layer < 0) progress.loss = loss_ / static_cast<double>(samples_.size());
    if (layer >= 0 || options_.output_matrix) {
      refuse_not_finite(sums);
      sums.divide(static_cast<float>(samples_.size()));
      folder_.sensitivities().write(place_of(step), sums.values());
    }
    progress.backward = step;
    folder_.note(progress);
    folder_.streams().shorten(std::max(layer < 0 ? config_.layers : layer, 0) * stream_size_);
  }
  return true;
}

FisherReport Work::finish(const std::filesystem::path& file) {
  FisherReport report{.loss = folder_.progress().loss, .weights = 0, .zeros = 0, .none = {}};
  std::vector<TensorEntry> entries;
  std::vector<int64_t> places;
  for (int32_t step = config_.layers + 1; step >= 1; --step) {
    if (step == 1 && !options_.output_matrix) continue;
    int64_t place = place_of(step);
    for (const TensorEntry& entry : sensitivity_entries(config_, layer_of(step))) {
      places.push_back(place);
      place += entry.shape[0] * entry.shape[1];
      entries.push_back(entry);
    }
  }
  const SampleOptions& samples = options_.samples;
  NewFile out(file);
  out.out().write(safetensors_header(entries, {{kMeasure, "gradient"},
                                               {kTextDigest, options_.text_digest},
                                               {kSampleCount, fmt::to_string(samples.samples)},
                                               {kSampleLength, fmt::to_string(samples.length)},
                                               {kSampleSeed, fmt::to_string(samples.seed)},
                                               {kMeanLoss, fmt::format("{:.9g}", report.loss)},
                                               {kWeightSketch, sketch_text(checkpoint_)}}));
  for (size_t i = 0; i < entries.size(); ++i) {
    std::vector<float> row(static_cast<size_t>(entries[i].shape[1]));
    int64_t zeros = 0;
    for (int64_t r = 0; r < entries[i].shape[0]; ++r) {
      folder_.sensitivities().read(places[i] + r * std::ssize(row), row);
      zeros += std::ranges::count(row, 0.0f);
      out.out().write(std::as_bytes(std::span(row)));
    }
    report.weights += entries[i].shape[0] * std::ssize(row);
    report.zeros += zeros;
    if (zeros == entries[i].shape[0] * std::ssize(row)) report.none.push_back(entries[i].name);
  }
  if (report.zeros == report.weights) {
    bad_input("{}: the gradients of all weights are 0, so that none is more sensitive than another",
              checkpoint_.path.string());
  }
  out.keep();
  folder_.remove();
  return report;
}

}  // namespace

int64_t fisher_memory(const ModelConfig& config, const FisherOptions& options) {
  const int64_t rows = options.samples.length - 1;
  int64_t matrices = 0;
  for (int32_t layer = 0; layer < config.layers; ++layer) {
    matrices = std::max(matrices, matrix_weights(config, layer));
  }
  // The stream, heads and inner numbers each stand in the graph several times, gradients once more.
  const int64_t inner =
      std::max(config.intermediate_size, config.experts.intermediate_size * std::max(config.experts.used, 1));
  const int64_t heads = int64_t{config.heads} * (config.head_dim * 8 + 6 * rows);
  const int64_t of_layer = rows * (12 * int64_t{config.hidden_size} + heads + 10 * inner);
  const int64_t head = int64_t{config.vocab_size} * config.hidden_size;
  const int64_t of_loss = rows * 4 * int64_t{config.vocab_size} + (options.output_matrix ? head : 0);
  const int64_t layer = 2 * matrices + threads_at_work(options) * (matrices + of_layer);
  const int64_t loss = (options.output_matrix ? 2 : 1) * head + threads_at_work(options) * of_loss;
  constexpr int64_t kLibraries = int64_t{300} << 20;
  return std::max(layer, loss) * int64_t{sizeof(float)} + kLibraries;
}

int64_t fisher_disk(const ModelConfig& config, const FisherOptions& options) {
  int64_t weights = options.output_matrix ? matrix_weights(config, -1) : 0;
  for (int32_t layer = 0; layer < config.layers; ++layer) weights += matrix_weights(config, layer);
  const int64_t streams = (int64_t{config.layers} + 3) * options.samples.samples *
                          (options.samples.length - 1) * config.hidden_size;
  return (streams + 2 * weights) * int64_t{sizeof(float)};
}

void require_room(const ModelConfig& config, const std::filesystem::path& file,
                  const FisherOptions& options) {
  const auto need = static_cast<double>(fisher_memory(config, options));
  const int64_t threads = threads_at_work(options);
  const std::optional<int64_t> memory = available_memory();
  if (memory && need > static_cast<double>(*memory)) {
    fail(
        ErrorKind::kMachine,
        "the sensitivities take {} of memory with {} thread{}, and {} are free: use fewer threads or shorter "
        "samples, or a machine with more",
        size_text(need), threads, threads == 1 ? "" : "s", size_text(static_cast<double>(*memory)));
  }
  std::error_code failure;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const std::filesystem::space_info space = std::filesystem::space(folder, failure);
  const auto room = static_cast<double>(fisher_disk(config, options));
  if (!failure && !options.resume && room > static_cast<double>(space.available)) {
    fail(ErrorKind::kMachine,
         "the sensitivities take {} in {}, and {} are free: use fewer or shorter samples, or another disk",
         size_text(room), folder.string(), size_text(static_cast<double>(space.available)));
  }
}

std::optional<FisherReport> write_sensitivities(const Checkpoint& checkpoint,
                                                const std::vector<std::vector<int32_t>>& samples,
                                                const std::filesystem::path& file,
                                                const FisherOptions& options) {
  require_free_name(file);
  require_room(checkpoint.config, file, options);
  graph_makers();
  Work work(checkpoint, samples, file, options);
  if (!work.forward() || !work.backward()) return std::nullopt;
  return work.finish(file);
}

}  // namespace verbatim::train
