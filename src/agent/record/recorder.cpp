#include "agent/record/journal.h"
#include "agent/record/run_json.h"

namespace verbatim::agent {

void Journal::add(Time time, const char* kind, int64_t number, Json value) {
  entries_.push_back(Json::array({time.count(), kind, number, std::move(value)}));
}

/// Numbers timers in the order of their making, and writes down which of them was called when.
class Recorder::RecordingLoop : public Loop {
 public:
  RecordingLoop(Loop& inner, Journal& journal) : inner_(inner), journal_(journal) {}
  Time now() const override { return inner_.now(); }
  uint64_t after(Duration time, std::function<void()> work) override {
    const uint64_t number = ++made_;
    timers_[number] = inner_.after(time, [this, number, work = std::move(work)] {
      timers_.erase(number);
      journal_.add(inner_.now(), "timer", static_cast<int64_t>(number), nullptr);
      work();
    });
    return number;
  }
  void forget(uint64_t timer) override {
    const auto found = timers_.find(timer);
    if (found == timers_.end()) return;
    inner_.forget(found->second);
    timers_.erase(found);
  }

 private:
  Loop& inner_;
  Journal& journal_;
  std::map<uint64_t, uint64_t> timers_;
  uint64_t made_ = 0;
};

class Recorder::RecordingEndpoint : public Endpoint {
 public:
  RecordingEndpoint(Loop& loop, Endpoint& inner, Journal& journal)
      : loop_(loop), inner_(inner), journal_(journal) {}
  bool constrains() const override { return inner_.constrains(); }
  std::optional<int64_t> room(const std::vector<ModelMessage>& messages) const override {
    return inner_.room(messages);
  }
  std::unique_ptr<ModelStream> start(ModelRequest request, ModelHooks hooks) override {
    const int64_t number = ++made_;
    ModelHooks recorded;
    recorded.piece = [this, number, piece = std::move(hooks.piece)](std::string_view text) {
      journal_.add(loop_.now(), "piece", number, valid_utf8(text));
      piece(valid_utf8(text));
    };
    recorded.ended = [this, number, ended = std::move(hooks.ended)](const ModelReply& reply) {
      journal_.add(loop_.now(), "reply", number, json_of(reply));
      ended(reply);
    };
    return inner_.start(std::move(request), std::move(recorded));
  }

 private:
  Loop& loop_;
  Endpoint& inner_;
  Journal& journal_;
  int64_t made_ = 0;
};

class Recorder::RecordingTool : public Tool {
 public:
  RecordingTool(Loop& loop, std::shared_ptr<Tool> inner, Journal& journal, int64_t& made)
      : loop_(loop), inner_(std::move(inner)), journal_(journal), made_(made) {}
  const ToolDeclaration& declaration() const override { return inner_->declaration(); }
  std::shared_ptr<ToolCall> start(const Json& arguments, ToolHooks hooks) override {
    const int64_t number = ++made_;
    ToolHooks recorded;
    recorded.done = [this, number, done = std::move(hooks.done)](ToolResult result) {
      result = result_of(json_of(result));  // as the recording will have it
      journal_.add(loop_.now(), "result", number, json_of(result));
      done(std::move(result));
    };
    recorded.progress = [this, number, progress = std::move(hooks.progress)](const std::string& what) {
      journal_.add(loop_.now(), "progress", number, valid_utf8(what));
      if (progress) progress(valid_utf8(what));
    };
    return inner_->start(arguments, std::move(recorded));
  }

 private:
  Loop& loop_;
  std::shared_ptr<Tool> inner_;
  Journal& journal_;
  int64_t& made_;
};

Recorder::Recorder(Loop& loop, Endpoint& endpoint, const ToolSet& tools)
    : inner_loop_(loop),
      inner_tools_(tools),
      begin_(loop.now()),
      loop_(std::make_unique<RecordingLoop>(loop, journal_)),
      endpoint_(std::make_unique<RecordingEndpoint>(loop, endpoint, journal_)) {
  for (ToolEntry entry : tools.entries()) {
    entry.tool = std::make_shared<RecordingTool>(loop, entry.tool, journal_, calls_);
    tools_.add(std::move(entry));
  }
}

Recorder::~Recorder() = default;

Loop& Recorder::loop() {
  return *loop_;
}

Endpoint& Recorder::endpoint() {
  return *endpoint_;
}

std::function<void(const Task&, std::function<void(bool)>)> Recorder::recorded(
    std::function<void(const Task&, std::function<void(bool)>)> ask) {
  if (!ask) return {};
  asks_ = true;
  return [this, ask = std::move(ask)](const Task& task, std::function<void(bool)> answer) {
    ask(task, [this, id = task.plan.id, answer = std::move(answer)](bool allowed) {
      journal_.add(inner_loop_.now(), "decision", id, allowed);
      answer(allowed);
    });
  };
}

void Recorder::cancelled() {
  journal_.add(inner_loop_.now(), "cancel", 0, nullptr);
}

std::string Recorder::text(const RunOptions& options, const std::string& question) const {
  Json tools = Json::array();
  for (const ToolEntry& entry : inner_tools_.entries()) tools.push_back(json_of(entry));
  const Json head = {{"verbatim_agent_recording", kRecordingVersion},
                     {"question", question},
                     {"begin", begin_.count()},
                     {"constrains", endpoint_->constrains()},
                     {"asks", asks_},
                     {"options", json_of(options)},
                     {"tools", tools}};
  std::string text = dump(head) + "\n";
  for (const Json& entry : journal_.entries()) text += dump(entry) + "\n";
  return text;
}

}  // namespace verbatim::agent
