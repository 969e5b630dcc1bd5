#include <fmt/format.h>

#include "agent/record/journal.h"
#include "agent/record/run_json.h"
#include "verbatim/error.h"

namespace verbatim::agent {

namespace {

[[noreturn]] void unfit(const std::string& why) {
  throw Error(ErrorKind::kBadInput, "the recording cannot be replayed: " + why);
}

/// The world of a run as its journal has it.
struct Past {
  Time now{0};
  std::map<int64_t, std::function<void()>> timers;
  std::map<int64_t, ModelHooks> streams;
  std::map<int64_t, ToolHooks> calls;
  std::map<int64_t, std::function<void(bool)>> questions;
  int64_t made_timers = 0;
  int64_t made_streams = 0;
  int64_t made_calls = 0;
};

class PastLoop : public Loop {
 public:
  explicit PastLoop(Past& past) : past_(past) {}
  Time now() const override { return past_.now; }
  uint64_t after(Duration, std::function<void()> work) override {
    past_.timers[++past_.made_timers] = std::move(work);
    return static_cast<uint64_t>(past_.made_timers);
  }
  void forget(uint64_t timer) override { past_.timers.erase(static_cast<int64_t>(timer)); }

 private:
  Past& past_;
};

class PastEndpoint : public Endpoint {
 public:
  PastEndpoint(Past& past, bool constrains) : past_(past), constrains_(constrains) {}
  bool constrains() const override { return constrains_; }
  std::unique_ptr<ModelStream> start(ModelRequest, ModelHooks hooks) override {
    const int64_t number = ++past_.made_streams;
    past_.streams[number] = std::move(hooks);
    return std::make_unique<Stream>(past_, number);
  }

 private:
  struct Stream : ModelStream {
    Stream(Past& past_, int64_t number_) : past(past_), number(number_) {}
    ~Stream() override { past.streams.erase(number); }
    Past& past;
    int64_t number;
  };
  Past& past_;
  bool constrains_;
};

class PastTool : public Tool {
 public:
  PastTool(Past& past, ToolDeclaration declaration) : past_(past), declaration_(std::move(declaration)) {}
  const ToolDeclaration& declaration() const override { return declaration_; }
  std::shared_ptr<ToolCall> start(const Json&, ToolHooks hooks) override {
    const int64_t number = ++past_.made_calls;
    past_.calls[number] = std::move(hooks);
    return std::make_shared<Call>(past_, number);
  }

 private:
  struct Call : ToolCall {
    Call(Past& past_, int64_t number_) : past(past_), number(number_) {}
    ~Call() override { past.calls.erase(number); }
    void cancel() override {}  // what came of it is in the journal
    Past& past;
    int64_t number;
  };
  Past& past_;
  ToolDeclaration declaration_;
};

/// What a map has under a number; the recording does not fit if that is nothing.
template <typename Value>
Value found(const std::map<int64_t, Value>& map, int64_t number, const char* kind) {
  const auto at = map.find(number);
  if (at == map.end()) unfit(fmt::format("it has a {} {} that this run has not", kind, number));
  return at->second;
}

void apply(Past& past, Run& run, const Json& entry) {
  past.now = Time(whole_of(entry.at(0)));
  const auto kind = entry.at(1).get<std::string>();
  const auto number = whole_of(entry.at(2));
  const Json& value = entry.at(3);
  if (kind == "timer") {
    const auto work = found(past.timers, number, "timer");
    past.timers.erase(number);
    work();
  } else if (kind == "piece") {
    found(past.streams, number, "reply").piece(value.get<std::string>());
  } else if (kind == "reply") {
    found(past.streams, number, "reply").ended(reply_of(value));
  } else if (kind == "result") {
    found(past.calls, number, "call").done(result_of(value));
  } else if (kind == "progress") {
    found(past.calls, number, "call").progress(value.get<std::string>());
  } else if (kind == "decision") {
    found(past.questions, number, "question")(value.get<bool>());
  } else if (kind == "cancel") {
    run.cancel();
  } else {
    unfit("it has an entry of a kind that is not known");
  }
}

/// The recording's lines as JSON, the first of which describes the run.
std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::optional<Json> line = parse_json(std::string_view(text).substr(at, end - at));
    if (!line) unfit(fmt::format("line {} is no JSON", lines.size() + 1));
    lines.push_back(std::move(*line));
    at = end + 1;
  }
  if (lines.empty() || !lines[0].is_object() || !lines[0].contains("verbatim_agent_recording")) {
    unfit("it is no recording of the agent");
  }
  if (lines[0]["verbatim_agent_recording"] != kRecordingVersion) unfit("it is of another version");
  return lines;
}

}  // namespace

RunResult replay(const std::string& text, std::string& question,
                 const std::function<void(const RunEvent&)>& event, int64_t& calls) {
  const std::vector<Json> lines = lines_of(text);
  try {
    const Json& head = lines[0];
    Past past;
    past.now = Time(whole_of(head.at("begin")));
    question = head.at("question").get<std::string>();
    PastLoop loop(past);
    PastEndpoint endpoint(past, head.at("constrains").get<bool>());
    ToolSet tools;
    for (const Json& json : head.at("tools")) {
      ToolDeclaration declaration;
      ToolEntry entry = entry_of(json, declaration);
      entry.tool = std::make_shared<PastTool>(past, std::move(declaration));
      tools.add(std::move(entry));
    }
    std::optional<RunResult> result;
    RunHooks hooks;
    hooks.event = event;
    if (head.at("asks").get<bool>()) {
      hooks.ask = [&past](const Task& task, std::function<void(bool)> answer) {
        past.questions[task.plan.id] = std::move(answer);
      };
    }
    hooks.ended = [&result](const RunResult& end) { result = end; };
    Run run(loop, endpoint, tools, options_of(head.at("options")), question, std::move(hooks));
    for (size_t i = 1; i < lines.size() && !result; ++i) apply(past, run, lines[i]);
    if (!result) unfit("it ends before the run");
    calls = 0;
    for (const auto& [id, task] : run.tasks()) calls += task.attempts > 0 ? 1 : 0;
    return *result;
  } catch (const Json::exception&) {
    unfit("it has an entry that is not understood");
  }
}

}  // namespace verbatim::agent
