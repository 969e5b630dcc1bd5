#pragma once

#include <pybind11/pybind11.h>
#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>

#include "results.h"
#include "verbatim/engine.h"
#include "waiting.h"

namespace verbatim::python {

class LoadedModel;

/// The answer to a request, as it comes into being. Its functions are called with the interpreter's lock and
/// wait without it. An answer that nobody holds any more is cancelled. In a process that was forked after it
/// was asked for, all but cancel(), which does nothing there, throw Error(kUsage): nobody works on it.
class Answer {
 public:
  /// When the waker wakes: with every piece of text, or once the answer is complete.
  enum class Wakes { kPieces, kEnd };

  /// Submits a request, without the interpreter's lock.
  static std::shared_ptr<Answer> ask(std::shared_ptr<LoadedModel> model, Engine& engine, Request request,
                                     Wakes wakes, std::shared_ptr<Waker> waker);
  ~Answer();

  /// Waits for the next piece and returns it; nothing at the end. Throws what ended the answer.
  std::optional<TokenStream::Piece> next();
  /// The next piece if there is one; nothing at the end or if there is none yet.
  std::optional<TokenStream::Piece> poll();
  /// Waits for the end. Throws what ended the answer.
  std::shared_ptr<RecipeResult> result();
  /// Whether the answer has ended.
  bool done() const;
  /// Lets the answer end before its next pass.
  void cancel();
  /// A descriptor that can be read from when the waker has woken, and until rest().
  int fileno() const;
  /// Makes the descriptor unreadable until the waker wakes again.
  void rest() const;

 private:
  /// What the engine tells of the answer; it holds no more of it than this.
  struct Watch {
    void tell();

    std::shared_ptr<Waker> waker;
    Wakes wakes = Wakes::kPieces;
    std::mutex mutex;
    std::optional<TokenStream> stream;  ///< set once, right after the request was submitted
  };

  Answer(std::shared_ptr<LoadedModel> model, std::shared_ptr<Watch> watch, Recipe recipe);
  /// Waits until `ready` says true; a signal's handler that throws cancels the answer.
  void wait(const std::function<bool()>& ready);

  std::shared_ptr<LoadedModel> model_;  // its engine works on the answer
  std::shared_ptr<Watch> watch_;
  Recipe recipe_;
  std::shared_ptr<RecipeResult> result_;
  pid_t process_;  // the process that asked
};

/// Makes the class of streams.
void bind_answers(pybind11::module_& module);

}  // namespace verbatim::python
