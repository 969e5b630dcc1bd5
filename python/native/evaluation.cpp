#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>

#include "arguments.h"
#include "model.h"

namespace verbatim::python {

namespace py = pybind11;

namespace {

py::list score_text(const LoadedModel& loaded, py::handle text, py::handle top_logprobs, py::handle reading) {
  const Model model = loaded.model();
  const std::vector<int32_t> tokens = prompt_of(model, text, "text");
  ScoreOptions options;
  options.top_logprobs = static_cast<int32_t>(whole_of(top_logprobs, "top_logprobs", 0, kMostTopLogprobs));
  options.reading = text_of(reading, "reading");
  options.threads = loaded.threads();
  options.progress = [check = SignalCheck()](double) mutable { check(); };
  std::vector<ScoredToken> scored;
  {
    const Unlocked released;
    scored = score(model, tokens, options);
  }
  return py::cast(std::move(scored));
}

/// The logits of a text, in an array that is the memory they were written to.
py::array logits_of_text(const LoadedModel& loaded, py::handle text, py::handle reading) {
  const Model model = loaded.model();
  const std::vector<int32_t> tokens = prompt_of(model, text, "text");
  WholeLogitsOptions options;
  options.reading = text_of(reading, "reading");
  options.threads = loaded.threads();
  const auto vocabulary = static_cast<size_t>(model.vocab_size());
  std::unique_ptr<float[]> memory;
  {
    const Unlocked released;
    SignalCheck check;
    // Nothing is computed for more tokens than the context has, and so no memory should be asked for.
    if (std::ssize(tokens) <= model.context()) memory.reset(new float[tokens.size() * vocabulary]);
    whole_logits(model, tokens, options, [&](int64_t position, std::span<const float> logits) {
      check();
      std::copy(logits.begin(), logits.end(), memory.get() + static_cast<size_t>(position) * vocabulary);
    });
  }
  const py::capsule owner(memory.get(), [](void* numbers) { delete[] static_cast<float*>(numbers); });
  float* const numbers = memory.release();
  return py::array_t<float>({tokens.size(), vocabulary}, numbers, owner);
}

}  // namespace

void bind_evaluation(py::class_<LoadedModel, std::shared_ptr<LoadedModel>>& models) {
  models.def("score", score_text, py::arg("text"), py::arg("top_logprobs"), py::arg("reading"));
  models.def("logits", logits_of_text, py::arg("text"), py::arg("reading"));
}

}  // namespace verbatim::python
