#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "capi/views.h"
#include "verbatim/verbatim.h"
#include "verbatim/verbatim_c.h"

namespace verbatim::capi {

/// The kinds of object that handles stand for.
enum class Kind { kModel, kEngine, kStream, kResult, kChat, kSession };

/// Objects for one thread at a time are locked while a call uses them.
struct OneThread {
  std::recursive_mutex mutex;
  bool used = false;  // with the mutex held: by a call further up on the same thread
};

struct ModelObject {
  static constexpr Kind kKind = Kind::kModel;
  static constexpr const char* kName = "model";
  explicit ModelObject(Model&& model_) : model(std::move(model_)) {}
  Model model;
};

struct EngineObject {
  static constexpr Kind kKind = Kind::kEngine;
  static constexpr const char* kName = "engine";
  EngineObject(const Model& model_, const EngineOptions& options) : model(model_), engine(model_, options) {}
  Model model;
  Engine engine;
};

struct StreamObject : OneThread {
  static constexpr Kind kKind = Kind::kStream;
  static constexpr const char* kName = "stream";
  explicit StreamObject(TokenStream&& stream_) : stream(std::move(stream_)) {}
  TokenStream stream;
  PieceView piece;
  bool waited_for = false;
};

struct ResultObject {
  static constexpr Kind kKind = Kind::kResult;
  static constexpr const char* kName = "result";
  explicit ResultObject(GenerateResult&& result_)
      : result(std::move(result_)), logprobs(std::exchange(result.logprobs, std::vector<ScoredToken>())) {}
  GenerateResult result;  // without its logprobs, of which the view has a copy
  LogprobsView logprobs;
};

struct ChatObject : OneThread {
  static constexpr Kind kKind = Kind::kChat;
  static constexpr const char* kName = "chat";
  explicit ChatObject(Chat&& chat_) : chat(std::move(chat_)) {}
  Chat chat;
};

struct SessionObject : OneThread {
  static constexpr Kind kKind = Kind::kSession;
  static constexpr const char* kName = "session";
  SessionObject(const Model& model, int64_t capacity, int32_t threads) : session(model, capacity, threads) {}
  Session session;
};

/// The object that a handle of some kind stands for. Throws BadArgument when the handle is NULL, closed, of
/// another kind or no handle at all.
std::shared_ptr<void> find(const void* handle, Kind kind, const char* name);
/// A new handle, which was never given out before.
void* give_out(std::shared_ptr<void> object, Kind kind);
/// Makes a handle unknown and returns its object, which goes with its last owner. Throws as find() does.
std::shared_ptr<void> take_back(const void* handle, Kind kind, const char* name);

template <typename Object>
std::shared_ptr<Object> object_of(const void* handle) {
  return std::static_pointer_cast<Object>(find(handle, Object::kKind, Object::kName));
}

/// Makes an object and its handle, which goes to `out`.
template <typename Object, typename Handle, typename... Arguments>
void open(Handle** out, Arguments&&... arguments) {
  auto object = std::make_shared<Object>(std::forward<Arguments>(arguments)...);
  *out = static_cast<Handle*>(give_out(std::move(object), Object::kKind));
}

/// Holds an object that is for one thread at a time as long as a call uses it. Throws Error(kUsage) when
/// another thread uses it, or a call whose callback this call comes from.
template <typename Object>
class InUse {
 public:
  explicit InUse(const void* handle)
      : object_(object_of<Object>(handle)), lock_(object_->mutex, std::try_to_lock) {
    if (!lock_.owns_lock() || object_->used) {
      throw Error(ErrorKind::kUsage, std::string("the ") + Object::kName +
                                         " is being used by another call: a " + Object::kName +
                                         " is for one thread at a time");
    }
    object_->used = true;
  }
  ~InUse() { object_->used = false; }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  Object* operator->() const { return object_.get(); }

 private:
  std::shared_ptr<Object> object_;
  std::unique_lock<std::recursive_mutex> lock_;
};

}  // namespace verbatim::capi
