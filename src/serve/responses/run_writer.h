#pragma once

#include <map>
#include <vector>

#include "serve/events.h"
#include "serve/responses/response_writer.h"
#include "serve/responses/server_tools.h"

namespace verbatim::serve {

/// Builds the response of a run: what servers of tools have, each call that was made, and the answer. A
/// stream tells each step of that in an event; a whole answer has what came out. Its members are called by
/// one thread, the service's.
class RunWriter {
 public:
  RunWriter(ResponseAnswer answer, std::vector<RunTool> tools);

  void take(const AgentEvent& event);
  void end(const AgentAnswer& ended);

 private:
  void tell(const AgentEvent& event);
  void begin();
  void list_tools(const std::string& label);
  void open_call(const AgentEvent& event);
  void close_call(const AgentEvent& event);
  void write_message(const std::string& text);
  void complete(const AgentAnswer& ended);
  void fail(const HttpError& error);
  void send(std::string_view type, Json&& members);
  /// Adds an item to the output, and returns its place.
  size_t open_item(Json&& item);
  void send_of_item(std::string_view type, size_t index, Json&& members = Json::object());
  void close_item(size_t index);

  ResponseAnswer answer_;
  std::vector<RunTool> tools_;
  EventStream events_;
  Json response_;
  int64_t sequence_ = 0;            // number of the next event
  std::map<int64_t, size_t> open_;  // the items of calls that run, by the number of their task
  std::string failure_;             // of this writer's; empty: none
  bool begun_ = false;
};

}  // namespace verbatim::serve
