#include "agent/mcp/mcp_client.h"

#include <fmt/format.h>

#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr const char* kProtocol = "2025-06-18";
constexpr int kMostStarts = 4;
/// A server that worked for so long before it ended may be started as often as at first.
constexpr Duration kLongLife = std::chrono::minutes(10);
constexpr Duration kTimeToEnd = std::chrono::milliseconds(500);
constexpr Duration kProgressEvery = std::chrono::milliseconds(100);
constexpr size_t kMostTools = 1000;
constexpr size_t kMostDescription = 4000;
constexpr int kNoSuchMethod = -32601;

std::string text_of(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string()
             ? object[key].get<std::string>()
             : std::string();
}

}  // namespace

McpClient::McpClient(RealLoop& loop, McpServerOptions options) : loop_(loop), options_(std::move(options)) {}

McpClient::~McpClient() {
  for (auto& [id, pending] : pending_) loop_.forget(pending.timer);
  loop_.forget(retired_timer_);
}

void McpClient::retire_transport() {
  if (!transport_) return;
  retired_.push_back(std::move(transport_));
  transport_.reset();
  if (retired_timer_ != 0) return;
  retired_timer_ = loop_.after(Duration(0), [this] {
    retired_timer_ = 0;
    retired_.clear();
  });
}

void McpClient::ensure_started() {
  if (transport_) return;
  if (loop_.now() - last_start_ > kLongLife) starts_ = 0;
  if (++starts_ > kMostStarts)
    throw Error(ErrorKind::kBadInput, "the server ended too often to be started again");
  last_start_ = loop_.now();
  ready_ = false;
  const auto current = [this, transport = ++transports_] { return transport_ && transports_ == transport; };
  McpTransportHooks hooks{.message =
                              [this, current](const Json& message) {
                                if (current()) on_message(message);
                              },
                          .closed =
                              [this, current](const std::string& why) {
                                if (current()) on_closed(why);
                              },
                          .failed =
                              [this, current](int64_t id, const std::string& why, bool again) {
                                if (current()) answer(id, nullptr, why, again);
                              }};
  transport_ = options_.process.command.empty() ? start_http_transport(loop_, options_, std::move(hooks))
                                                : start_stdio_transport(loop_, options_, std::move(hooks));
  const Json params = {{"protocolVersion", kProtocol},
                       {"capabilities", Json::object()},
                       {"clientInfo", {{"name", "verbatim"}, {"version", "1"}}}};
  const int64_t id = ++made_;
  pending_[id].answer = [this](const Json& result, const std::string& error, bool) {
    if (!error.empty() || !result.is_object()) {
      on_closed("the server cannot be initialized" + (error.empty() ? "" : ": " + error));
      return;
    }
    ready_ = true;
    transport_->send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
    send_waiting();
  };
  transport_->send({{"jsonrpc", "2.0"}, {"id", id}, {"method", "initialize"}, {"params", params}});
}

void McpClient::send_waiting() {
  for (auto& [id, pending] : pending_) {
    if (!pending.message.is_null()) transport_->send(std::exchange(pending.message, nullptr));
  }
}

int64_t McpClient::call(const std::string& tool, const Json& arguments, Answer answer,
                        std::function<void(const std::string&)> progress) {
  int64_t id = 0;
  try {
    ensure_started();
    id = ++made_;
    Pending& pending = pending_[id];
    pending.answer = std::move(answer);
    pending.progress = std::move(progress);
    pending.message = {
        {"jsonrpc", "2.0"},
        {"id", id},
        {"method", "tools/call"},
        {"params", {{"name", tool}, {"arguments", arguments}, {"_meta", {{"progressToken", id}}}}}};
    if (ready_) send_waiting();
  } catch (const Error& error) {
    retire_transport();
    id = ++made_;
    Pending& pending = pending_[id];
    pending.answer = std::move(answer);
    pending.timer = loop_.after(Duration(0), [this, id, what = std::string(error.what())] {
      this->answer(id, nullptr, what, false);
    });
  }
  return id;
}

int64_t McpClient::request(const std::string& method, Json params, Answer answer) {
  ensure_started();
  const int64_t id = ++made_;
  Pending& pending = pending_[id];
  pending.answer = std::move(answer);
  pending.message = {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
  if (ready_) send_waiting();
  return id;
}

void McpClient::cancel(int64_t call) {
  const auto found = pending_.find(call);
  if (found == pending_.end() || found->second.timer != 0) return;
  if (transport_ && found->second.message.is_null()) {
    transport_->send({{"jsonrpc", "2.0"},
                      {"method", "notifications/cancelled"},
                      {"params", {{"requestId", call}, {"reason", "the answer is not wanted any more"}}}});
    transport_->forget(call);
  }
  found->second.timer =
      loop_.after(Duration(0), [this, call] { answer(call, nullptr, "it was cancelled", false); });
}

void McpClient::forget(int64_t call) {
  const auto found = pending_.find(call);
  if (found == pending_.end()) return;
  loop_.forget(found->second.timer);
  pending_.erase(found);
}

void McpClient::answer(int64_t id, Json result, const std::string& error, bool again) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  loop_.forget(found->second.timer);
  const Answer answer = std::move(found->second.answer);
  pending_.erase(found);
  const auto self = weak_from_this().lock();
  if (answer) answer(std::move(result), error, again);
}

void McpClient::on_message(const Json& message) {
  const bool has_id = message.contains("id") && message["id"].is_number_integer();
  const std::string method = text_of(message, "method");
  if (!method.empty()) {
    const Json params = message.contains("params") ? message["params"] : Json::object();
    if (method == "notifications/progress" && params.is_object() && params.contains("progressToken") &&
        params["progressToken"].is_number_integer()) {
      const auto found = pending_.find(params["progressToken"].get<int64_t>());
      if (found == pending_.end() || !found->second.progress) return;
      const Time now = loop_.now();
      if (found->second.told && now - *found->second.told < kProgressEvery) return;
      found->second.told = now;
      std::string what =
          params.contains("progress") && params["progress"].is_number() ? dump(params["progress"]) : "?";
      if (params.contains("total") && params["total"].is_number()) what += " of " + dump(params["total"]);
      const std::string text = shown(text_of(params, "message"), kShownBytes);
      found->second.progress(text.empty() ? what : what + ": " + text);
    } else if (message.contains("id")) {
      Json reply = {{"jsonrpc", "2.0"}, {"id", message["id"]}};
      if (method == "ping") {
        reply["result"] = Json::object();
      } else {  // this client offers the server nothing: no files, no model, no person
        reply["error"] = {{"code", kNoSuchMethod}, {"message", "there is no such method here"}};
      }
      transport_->send(reply);
    }
    return;
  }
  if (!has_id) return;
  const auto id = message["id"].get<int64_t>();
  if (message.contains("error")) {
    const std::string what = text_of(message["error"], "message");
    answer(id, nullptr, what.empty() ? "the server answered with an error" : what, false);
  } else {
    answer(id, message.contains("result") ? message["result"] : Json(nullptr), {}, false);
  }
}

void McpClient::on_closed(const std::string& why) {
  const auto self = weak_from_this().lock();
  retire_transport();
  ready_ = false;
  std::vector<std::pair<int64_t, bool>> ids;  // whether the server never saw the call
  for (const auto& [id, pending] : pending_) ids.emplace_back(id, !pending.message.is_null());
  for (const auto& [id, unseen] : ids) answer(id, nullptr, why, unseen);
  if (const auto ended = std::exchange(ended_, {})) ended();
}

bool McpClient::end(std::function<void()> ended) {
  ended_ = {};
  if (!transport_ || !transport_->end()) return false;
  ended_ = std::move(ended);
  return true;
}

void McpClient::stop() {
  if (transport_) transport_->stop();
}

void McpClient::list_page(const std::string& cursor, std::shared_ptr<std::vector<Listed>> found,
                          std::shared_ptr<int64_t> page, std::function<void(const std::string& error)> done) {
  Json params = Json::object();
  if (!cursor.empty()) params["cursor"] = cursor;
  *page = request("tools/list", params,
                  [this, found, page, done, cursor](const Json& result, const std::string& error, bool) {
                    if (!error.empty()) return done(error);
                    if (!result.is_object() || !result.contains("tools") || !result["tools"].is_array()) {
                      return done("the server's list of tools is none");
                    }
                    for (const Json& tool : result["tools"]) {
                      const std::string name = text_of(tool, "name");
                      if (name.empty()) continue;
                      if (found->size() >= kMostTools)
                        return done(fmt::format("the server has more than {} tools", kMostTools));
                      Listed listed;
                      listed.declaration.name = name;
                      listed.declaration.description =
                          first_bytes(text_of(tool, "description"), kMostDescription);
                      // A schema that is none says nothing, and the server has to check what it gets.
                      if (tool.contains("inputSchema") && tool["inputSchema"].is_object())
                        listed.declaration.parameters = tool["inputSchema"];
                      if (tool.contains("outputSchema") && tool["outputSchema"].is_object())
                        listed.output_schema = tool["outputSchema"];
                      found->push_back(std::move(listed));
                    }
                    const std::string next = text_of(result, "nextCursor");
                    if (next.empty() || next == cursor) return done({});
                    try {
                      list_page(next, found, page, done);
                    } catch (const Error& failure) {
                      done(failure.what());
                    }
                  });
}

void McpClient::list(Duration limit,
                     std::function<void(std::vector<Listed>, const std::string& error)> done) {
  auto found = std::make_shared<std::vector<Listed>>();
  auto timer = std::make_shared<uint64_t>(0);
  auto told = std::make_shared<bool>(false);
  auto page = std::make_shared<int64_t>(0);  // the request that is under way
  const auto tell = [this, found, timer, told, done = std::move(done)](const std::string& error) {
    if (std::exchange(*told, true)) return;
    loop_.forget(*timer);
    done(error.empty() ? std::move(*found) : std::vector<Listed>(), error);
  };
  // The server stays, so that it ends as every server does, and is not killed in the midst of its start. When
  // it is ready after all, it is called as any other.
  *timer = loop_.after(limit, [this, page, tell, limit] {
    const auto self = weak_from_this().lock();
    forget(*page);
    tell(fmt::format("the server has not listed its tools within {:.3g} s of its start", in_seconds(limit)));
  });
  try {
    list_page({}, found, page, tell);
  } catch (const Error& error) {
    loop_.forget(*timer);
    *timer = loop_.after(Duration(0), [tell, what = std::string(error.what())] { tell(what); });
  }
}

void end_servers(RealLoop& loop, const std::vector<std::shared_ptr<McpClient>>& clients) {
  size_t open = 0;
  for (const auto& client : clients) {
    if (client->end([&] {
          if (--open == 0) loop.stop();
        })) {
      ++open;
    }
  }
  if (open == 0) return;
  const uint64_t ask = loop.after(kTimeToEnd, [&] {
    for (const auto& client : clients) client->stop();
  });
  // Whoever ignores this, too, is killed as its client is destroyed.
  const uint64_t limit = loop.after(kTimeToEnd * 3, [&] { loop.stop(); });
  try {
    loop.run();
  } catch (const std::exception&) {  // whoever is left is killed
  }
  loop.forget(ask);
  loop.forget(limit);
  for (const auto& client : clients) client->end({});  // what was to be told refers to this call
}

}  // namespace verbatim::agent
