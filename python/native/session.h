#pragma once

#include <pybind11/pybind11.h>
#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "model.h"
#include "results.h"

namespace verbatim::python {

/// One sequence of a model, for one thread at a time. All members are called with the interpreter's lock and
/// compute without it. All but cancel() throw Error(kUsage) while another call is using the session, once it
/// or its model is closed, and in a process that was forked after it was made.
class HeldSession {
 public:
  HeldSession(std::shared_ptr<LoadedModel> model, int64_t capacity);
  ~HeldSession();
  HeldSession(const HeldSession&) = delete;
  HeldSession& operator=(const HeldSession&) = delete;

  /// Appends a prompt and generates. `on_text` is None or a function that is told each piece of text. What
  /// it throws, or a signal's handler, leaves the sequence as it was.
  std::shared_ptr<RecipeResult> generate(pybind11::handle prompt, const pybind11::dict& arguments,
                                         pybind11::handle on_text);
  /// Generates the reply to a conversation: keeps what the sequence has of its tokens and forgets the rest.
  std::shared_ptr<RecipeResult> reply(const std::shared_ptr<LoadedModel>& model, const Chat& chat,
                                      const pybind11::dict& arguments, pybind11::handle on_text);
  /// Lets what is being generated end before the next pass.
  void cancel() { cancelled_ = true; }

  void truncate(int64_t length);
  std::vector<int32_t> tokens();
  int64_t evaluated();
  void save(const std::filesystem::path& path);
  void restore(const std::filesystem::path& path);
  /// Frees the memory of the keys and values. May be called again.
  void close();

 private:
  /// Marks the session as used by a call. It comes and goes with the interpreter's lock held, which is what
  /// guards the mark.
  class Use {
   public:
    explicit Use(HeldSession& held);
    ~Use() { held_.used_ = false; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    Session* operator->() const { return &*held_.session_; }

   private:
    HeldSession& held_;
  };

  std::shared_ptr<RecipeResult> run(const Use& session, std::vector<int32_t> prompt, ChosenOptions options,
                                    pybind11::handle on_text);

  std::shared_ptr<LoadedModel> model_;
  std::optional<Session> session_;
  bool used_ = false;
  std::atomic<bool> cancelled_ = false;
  pid_t process_;
};

/// Makes the class of sessions.
void bind_sessions(pybind11::module_& module);

}  // namespace verbatim::python
