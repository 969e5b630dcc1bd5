#include "agent/guard.h"

namespace verbatim::agent {

namespace {

using SharedFailed = std::shared_ptr<const Guard::Failed>;

/// The function without its exceptions. It holds all that it needs, as a run may end within it, and its guard
/// with it.
template <typename... Arguments>
std::function<void(Arguments...)> guarded(SharedFailed failed, std::function<void(Arguments...)> work) {
  if (!work) return {};
  return [failed = std::move(failed), work = std::move(work)](Arguments... arguments) {
    try {
      work(std::forward<Arguments>(arguments)...);
    } catch (const std::exception& error) {
      (*failed)(error.what());
    } catch (...) {
      (*failed)("something was thrown that is no exception");
    }
  };
}

}  // namespace

class Guard::GuardedLoop : public Loop {
 public:
  GuardedLoop(Loop& inner, SharedFailed failed) : inner_(inner), failed_(std::move(failed)) {}
  Time now() const override { return inner_.now(); }
  uint64_t after(Duration time, std::function<void()> work) override {
    return inner_.after(time, guarded(failed_, std::move(work)));
  }
  void forget(uint64_t timer) override { inner_.forget(timer); }

 private:
  Loop& inner_;
  SharedFailed failed_;
};

class Guard::GuardedEndpoint : public Endpoint {
 public:
  GuardedEndpoint(Endpoint& inner, SharedFailed failed) : inner_(inner), failed_(std::move(failed)) {}
  bool constrains() const override { return inner_.constrains(); }
  std::optional<int64_t> room(const std::vector<ModelMessage>& messages) const override {
    return inner_.room(messages);
  }
  std::unique_ptr<ModelStream> start(ModelRequest request, ModelHooks hooks) override {
    return inner_.start(std::move(request), {.piece = guarded(failed_, std::move(hooks.piece)),
                                             .ended = guarded(failed_, std::move(hooks.ended))});
  }

 private:
  Endpoint& inner_;
  SharedFailed failed_;
};

class Guard::GuardedTool : public Tool {
 public:
  GuardedTool(std::shared_ptr<Tool> inner, SharedFailed failed)
      : inner_(std::move(inner)), failed_(std::move(failed)) {}
  const ToolDeclaration& declaration() const override { return inner_->declaration(); }
  std::shared_ptr<ToolCall> start(const Json& arguments, ToolHooks hooks) override {
    return inner_->start(arguments, {.done = guarded(failed_, std::move(hooks.done)),
                                     .progress = guarded(failed_, std::move(hooks.progress))});
  }

 private:
  std::shared_ptr<Tool> inner_;
  SharedFailed failed_;
};

Guard::Guard(Loop& loop, Endpoint& endpoint, const ToolSet& tools, Failed failed) {
  const auto shared = std::make_shared<const Failed>(std::move(failed));
  loop_ = std::make_unique<GuardedLoop>(loop, shared);
  endpoint_ = std::make_unique<GuardedEndpoint>(endpoint, shared);
  for (ToolEntry entry : tools.entries()) {
    entry.tool = std::make_shared<GuardedTool>(entry.tool, shared);
    tools_.add(std::move(entry));
  }
}

Guard::~Guard() = default;

Loop& Guard::loop() {
  return *loop_;
}

Endpoint& Guard::endpoint() {
  return *endpoint_;
}

}  // namespace verbatim::agent
