#include "answer.h"

#include <unistd.h>

#include <utility>

#include "arguments.h"
#include "errors.h"
#include "model.h"

namespace verbatim::python {

namespace py = pybind11;

void Answer::Watch::tell() {
  if (wakes == Wakes::kEnd) {
    const std::lock_guard lock(mutex);
    if (!stream || !stream->done()) return;
  }
  waker->wake();
}

std::shared_ptr<Answer> Answer::ask(std::shared_ptr<LoadedModel> model, Engine& engine, Request request,
                                    Wakes wakes, std::shared_ptr<Waker> waker) {
  auto watch = std::make_shared<Watch>();
  watch->waker = std::move(waker);
  watch->wakes = wakes;
  Recipe recipe = request.recipe;
  request.notify = [weak = std::weak_ptr<Watch>(watch)] {
    if (const auto held = weak.lock()) held->tell();
  };
  TokenStream stream = engine.submit(std::move(request));
  {
    const std::lock_guard lock(watch->mutex);
    watch->stream = std::move(stream);
  }
  watch->tell();  // what came before the stream was known
  return std::shared_ptr<Answer>(new Answer(std::move(model), std::move(watch), std::move(recipe)));
}

Answer::Answer(std::shared_ptr<LoadedModel> model, std::shared_ptr<Watch> watch, Recipe recipe)
    : model_(std::move(model)), watch_(std::move(watch)), recipe_(std::move(recipe)), process_(getpid()) {}

Answer::~Answer() {
  cancel();
  // A thread that the forked process has not may have held the stream's locks.
  if (process_ != getpid()) new std::shared_ptr<Watch>(std::move(watch_));
}

bool Answer::done() const {
  refuse_in_fork_of(process_);
  return watch_->stream->done();
}

void Answer::cancel() {
  if (process_ == getpid()) watch_->stream->cancel();
}

int Answer::fileno() const {
  refuse_in_fork_of(process_);
  return watch_->waker->fileno();
}

void Answer::rest() const {
  refuse_in_fork_of(process_);
  watch_->waker->rest();
}

void Answer::wait(const std::function<bool()>& ready) {
  try {
    wait_until(*watch_->waker, ready);
  } catch (const py::error_already_set&) {
    cancel();
    throw;
  }
}

std::optional<TokenStream::Piece> Answer::next() {
  std::optional<TokenStream::Piece> piece = poll();
  if (piece) return piece;
  wait([&] {
    // In this order: a piece may come before the end does.
    const bool ended = done();
    piece = watch_->stream->poll();
    return piece.has_value() || ended;
  });
  if (!piece) result();
  return piece;
}

std::optional<TokenStream::Piece> Answer::poll() {
  refuse_in_fork_of(process_);
  return watch_->stream->poll();
}

std::shared_ptr<RecipeResult> Answer::result() {
  refuse_in_fork_of(process_);
  if (result_ == nullptr) wait([this] { return done(); });
  // Another thread may have fetched it meanwhile.
  if (result_ == nullptr) {
    result_ = std::make_shared<RecipeResult>(watch_->stream->wait(), recipe_);
    model_.reset();
  }
  return result_;
}

void bind_answers(py::module_& module) {
  py::class_<Answer, std::shared_ptr<Answer>>(module, "Answer",
                                              "The answer to a request, as it comes into being.")
      .def("next",
           [](Answer& answer) -> py::object {
             const auto piece = answer.next();
             return piece ? py::object(str_of(piece->text)) : py::none();
           })
      .def("poll",
           [](Answer& answer) -> py::object {
             const auto piece = answer.poll();
             return piece ? py::object(str_of(piece->text)) : py::none();
           })
      .def("result", &Answer::result)
      .def("done", &Answer::done)
      .def("cancel", &Answer::cancel)
      .def("fileno", &Answer::fileno)
      .def("rest", &Answer::rest);
}

}  // namespace verbatim::python
