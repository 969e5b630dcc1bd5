#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/json.h"
#include "agent/loop/loop.h"
#include "agent/tools/declaration.h"

namespace verbatim::agent {

/// What a call of a tool came to.
struct ToolResult {
  bool done = false;       ///< whether there is a value
  Json value = nullptr;    ///< if done
  std::string error = {};  ///< if not: one line that says what is wrong
  bool again = false;      ///< if not: another attempt may succeed, and this one did nothing

  static ToolResult of(Json value) { return {.done = true, .value = std::move(value)}; }
  static ToolResult failure(std::string error, bool again = false) {
    return {.done = false, .error = std::move(error), .again = again};
  }
};

/// How a tool tells of a call.
struct ToolHooks {
  /// Called once, when nothing of the call runs any more, and never from within Tool::start() or
  /// ToolCall::cancel().
  std::function<void(ToolResult)> done = {};
  /// Called as often as there is something to tell; may be empty.
  std::function<void(const std::string&)> progress = {};
};

/// Tells that a call has ended, once. Whoever is told may drop the call that `hooks` is part of.
inline void tell_done(ToolHooks& hooks, ToolResult result) {
  const ToolHooks told = std::move(hooks);
  hooks = {};
  if (told.done) told.done(std::move(result));
}

/// A call that runs.
class ToolCall {
 public:
  /// Ends at once what still runs; the hooks are not called any more.
  virtual ~ToolCall() = default;
  /// Asks the tool to end; its hook `done` is called soon, whatever the result.
  virtual void cancel() = 0;
};

/// Something that can be called. Everything happens on the loop's thread.
class Tool {
 public:
  virtual ~Tool() = default;
  virtual const ToolDeclaration& declaration() const = 0;
  /// Starts a call with arguments that fit the declaration.
  virtual std::shared_ptr<ToolCall> start(const Json& arguments, ToolHooks hooks) = 0;
};

/// Whether a tool may be called.
enum class Policy : uint8_t {
  kAsk,    ///< a person is asked before every call
  kAllow,  ///< without asking
  kDeny,   ///< never; models do not see the tool
};

/// How much a call may take, and how the executor helps it.
struct ToolLimits {
  Duration time = std::chrono::seconds(30);  ///< of one attempt
  /// Further attempts, for a failure that says so, and for any failure of an idempotent tool.
  int retries = 2;
  Duration back_off =
      std::chrono::milliseconds(250);  ///< before the second attempt; doubled for each further one
  size_t output_bytes = 64 << 10;      ///< of a result's text; the rest is cut off, and the cut shown
  int concurrency = 8;                 ///< calls of the tool at a time
  /// After this time a second call of an idempotent tool is started, and the first answer taken; 0: never.
  Duration hedge_after = Duration(0);
};

/// A tool as a run has it.
struct ToolEntry {
  std::shared_ptr<Tool> tool;
  Policy policy = Policy::kAsk;
  bool idempotent = false;  ///< calling it twice does what calling it once does
  ToolLimits limits = {};
};

/// The tools of a run, each with a name of its own.
class ToolSet {
 public:
  /// Throws Error(kUsage) if the name is taken, or is `join` or `finish`, or no name that plans can write.
  void add(ToolEntry entry);
  /// Why no tool of a name can be added, as one line; empty if one can.
  std::string refusal(const std::string& name) const;
  const ToolEntry* find(std::string_view name) const;
  /// What models see: all tools but those that are denied.
  std::vector<ToolDeclaration> declarations() const;
  const std::vector<ToolEntry>& entries() const { return entries_; }

 private:
  std::vector<ToolEntry> entries_;
};

}  // namespace verbatim::agent
