#include "serve/log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <nlohmann/json.hpp>

#include <mutex>

namespace verbatim::serve {

namespace {

using nlohmann::ordered_json;

constexpr size_t kLongestPath = 200;

/// Gives lines to a function.
class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(std::function<void(const std::string&)> write) : write_(std::move(write)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write_(fmt::to_string(line));
  }
  void flush_() override {}

  std::function<void(const std::string&)> write_;
};

/// A JSON text on one line, whatever bytes its strings hold.
std::string dump(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// The members of a JSON object, to be put into another one.
std::string members(const ordered_json& object) {
  const std::string text = dump(object);
  return text.substr(1, text.size() - 2);
}

/// A text as a word of a line of text.
std::string word(const std::string& text) {
  if (text.empty()) return "-";
  std::string result = text.substr(0, kLongestPath);
  for (char& c : result) {
    if (c <= ' ' || c >= '\x7f') c = '?';
  }
  return text.size() > kLongestPath ? result + "..." : result;
}

}  // namespace

struct Log::Implementation {
  std::unique_ptr<spdlog::logger> logger;  // none: nothing is written
  bool json = false;
};

Log::Log(std::function<void(const std::string&)> write, bool json)
    : implementation_(std::make_unique<Implementation>()) {
  implementation_->json = json;
  if (!write) return;
  auto sink = std::make_shared<FunctionSink>(std::move(write));
  const char* const pattern =
      json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})" : "%Y-%m-%dT%H:%M:%S.%eZ %-7l %v";
  sink->set_formatter(
      std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc, ""));
  implementation_->logger = std::make_unique<spdlog::logger>("verbatim", std::move(sink));
}

Log::~Log() = default;

void Log::say(std::string_view level, const std::string& message) {
  if (!implementation_->logger) return;
  const auto at = level == "error"     ? spdlog::level::err
                  : level == "warning" ? spdlog::level::warn
                                       : spdlog::level::info;
  std::string line = message;
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  if (implementation_->json) line = members({{"message", line}});
  implementation_->logger->log(at, spdlog::string_view_t(line));
}

void Log::access(const Access& access) {
  if (!implementation_->logger) return;
  const double milliseconds = static_cast<double>(static_cast<int64_t>(access.milliseconds * 10)) / 10;
  std::string line;
  if (implementation_->json) {
    line = members({{"message", "request"},
                    {"method", access.method},
                    {"path", access.path.substr(0, kLongestPath)},
                    {"status", access.status},
                    {"whole", access.whole},
                    {"bytes", access.bytes},
                    {"ms", milliseconds},
                    {"id", access.id},
                    {"peer", access.peer}});
  } else {
    line =
        fmt::format("{} {} {} {} {}B {}ms {}{}", word(access.peer), word(access.method), word(access.path),
                    access.status, access.bytes, milliseconds, word(access.id), access.whole ? "" : " cut");
  }
  implementation_->logger->log(spdlog::level::info, spdlog::string_view_t(line));
}

}  // namespace verbatim::serve
