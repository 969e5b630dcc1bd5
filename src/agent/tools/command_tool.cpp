#include "agent/tools/command_tool.h"

#include <fmt/format.h>

#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

std::string too_much() {
  return fmt::format("it answered more than {} MiB", kMostAnswerBytes >> 20);
}

/// A call of a program.
class CommandCall : public ToolCall {
 public:
  CommandCall(RealLoop& loop, ProcessOptions options, const Json& arguments, ToolHooks hooks)
      : loop_(loop), hooks_(std::move(hooks)), name_(options.command.at(0)) {
    for (std::string& word : options.command) {
      if (word.size() < 3 || word.front() != '{' || word.back() != '}') continue;
      const std::string key = word.substr(1, word.size() - 2);
      word = arguments.contains(key) ? as_text(arguments[key]) : std::string();
      word.erase(std::find(word.begin(), word.end(), '\0'), word.end());
    }
    try {
      process_ =
          std::make_unique<Process>(loop, options,
                                    ProcessHooks{.output = [this](std::string_view piece) { take(piece); },
                                                 .ended = [this](int status) { ended(status); }});
      process_->write(dump(arguments) + "\n");
      process_->end_input();
    } catch (const Error& error) {
      timer_ = loop_.after(Duration(0), [this, what = std::string(error.what())] {
        timer_ = 0;
        tell_done(hooks_, ToolResult::failure(what));
      });
    }
  }
  ~CommandCall() override { loop_.forget(timer_); }

  void cancel() override {
    if (process_) process_->stop();
  }

 private:
  void take(std::string_view piece) {
    if (output_.size() + piece.size() > kMostAnswerBytes) {
      too_much_ = true;
      process_->kill();
    }
    if (!too_much_) output_ += piece;
  }

  void ended(int status) {
    if (too_much_) {
      tell_done(hooks_, ToolResult::failure(too_much()));
    } else if (status != 0) {
      tell_done(hooks_, ToolResult::failure(name_ + " " + process_->ending(status)));
    } else {
      tell_done(hooks_, ToolResult::of(value_of_output(std::move(output_))));
    }
  }

  RealLoop& loop_;
  ToolHooks hooks_;
  std::string name_;
  std::unique_ptr<Process> process_;
  std::string output_;
  bool too_much_ = false;
  uint64_t timer_ = 0;
};

class CommandTool : public Tool {
 public:
  CommandTool(RealLoop& loop, ToolDeclaration declaration, ProcessOptions process)
      : loop_(loop), declaration_(std::move(declaration)), process_(std::move(process)) {}
  const ToolDeclaration& declaration() const override { return declaration_; }
  std::shared_ptr<ToolCall> start(const Json& arguments, ToolHooks hooks) override {
    return std::make_shared<CommandCall>(loop_, process_, arguments, std::move(hooks));
  }

 private:
  RealLoop& loop_;
  ToolDeclaration declaration_;
  ProcessOptions process_;
};

/// A call of an address.
class UrlCall : public ToolCall {
 public:
  UrlCall(RealLoop& loop, HttpCallOptions options, ToolHooks hooks) : loop_(loop), hooks_(std::move(hooks)) {
    call_ = start_http(loop, std::move(options),
                       {.head = [this](const HttpHead& head) { status_ = head.status; },
                        .body =
                            [this](std::string_view piece) {
                              output_ += piece;
                              if (output_.size() > kMostAnswerBytes)
                                end_soon(ToolResult::failure(too_much()));
                            },
                        .ended = [this](const std::string& error) { ended(error); }});
  }
  ~UrlCall() override { loop_.forget(timer_); }
  void cancel() override { end_soon(ToolResult::failure("it was cancelled")); }

 private:
  void end_soon(ToolResult result) {
    if (timer_ != 0) return;
    call_.reset();
    timer_ = loop_.after(Duration(0), [this, result = std::move(result)] { tell_done(hooks_, result); });
  }

  void ended(const std::string& error) {
    if (!error.empty()) {
      tell_done(hooks_, ToolResult::failure(error, !call_->sent()));
    } else if (status_ < 200 || status_ > 299) {
      // This status alone says that nothing was done; behind a 503 anything may be.
      tell_done(hooks_, ToolResult::failure(fmt::format("it answered with status {}: {}", status_,
                                                        shown(output_, kShownAnswerBytes)),
                                            status_ == kTooManyRequests));
    } else {
      tell_done(hooks_, ToolResult::of(value_of_output(std::move(output_))));
    }
  }

  RealLoop& loop_;
  ToolHooks hooks_;
  std::unique_ptr<HttpCall> call_;
  std::string output_;
  int status_ = 0;
  uint64_t timer_ = 0;
};

class UrlTool : public Tool {
 public:
  UrlTool(RealLoop& loop, ToolDeclaration declaration, std::string url, HttpHeaders headers)
      : loop_(loop),
        declaration_(std::move(declaration)),
        url_(std::move(url)),
        headers_(std::move(headers)) {
    HttpUrl::parse(url_);  // throws if it is none
    headers_.emplace_back("Content-Type", "application/json");
  }
  const ToolDeclaration& declaration() const override { return declaration_; }
  std::shared_ptr<ToolCall> start(const Json& arguments, ToolHooks hooks) override {
    return std::make_shared<UrlCall>(
        loop_, HttpCallOptions{.url = url_, .headers = headers_, .body = dump(arguments)}, std::move(hooks));
  }

 private:
  RealLoop& loop_;
  ToolDeclaration declaration_;
  std::string url_;
  HttpHeaders headers_;
};

}  // namespace

Json value_of_output(std::string output) {
  const size_t begin = output.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && (output[begin] == '{' || output[begin] == '[')) {
    if (std::optional<Json> json = parse_json(output)) return std::move(*json);
  }
  while (output.ends_with('\n') || output.ends_with('\r')) output.pop_back();
  return valid_utf8(output);
}

std::shared_ptr<Tool> command_tool(RealLoop& loop, ToolDeclaration declaration, ProcessOptions process) {
  return std::make_shared<CommandTool>(loop, std::move(declaration), std::move(process));
}

std::shared_ptr<Tool> url_tool(RealLoop& loop, ToolDeclaration declaration, std::string url,
                               HttpHeaders headers) {
  return std::make_shared<UrlTool>(loop, std::move(declaration), std::move(url), std::move(headers));
}

}  // namespace verbatim::agent
