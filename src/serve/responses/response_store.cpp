#include "serve/responses/response_store.h"

namespace verbatim::serve {
namespace {

int64_t bytes_of(const StoredResponse& response) {
  size_t bytes = sizeof(StoredResponse) + response.id.size() + response.json.size();
  for (const Message& message : response.messages) {
    bytes += sizeof(Message) + message.content.size() + message.name.size() + message.tool_call_id.size();
    for (const ToolCall& call : message.tool_calls) {
      bytes += sizeof(ToolCall) + call.id.size() + call.name.size() + call.arguments.size();
    }
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace

ResponseStore::ResponseStore(int64_t most, int64_t most_bytes) : most_(most), most_bytes_(most_bytes) {}

void ResponseStore::add(StoredResponse response) {
  const int64_t bytes = bytes_of(response);
  auto shared = std::make_shared<const StoredResponse>(std::move(response));
  const std::lock_guard lock(mutex_);
  entries_.push_front({.response = std::move(shared), .bytes = bytes});
  places_[entries_.front().response->id] = entries_.begin();
  bytes_ += bytes;
  while (!entries_.empty() && (std::ssize(entries_) > most_ || bytes_ > most_bytes_)) {
    drop(std::prev(entries_.end()));
  }
}

std::shared_ptr<const StoredResponse> ResponseStore::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(id);
  if (place == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, place->second);
  return place->second->response;
}

bool ResponseStore::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(id);
  if (place == places_.end()) return false;
  drop(place->second);
  return true;
}

void ResponseStore::drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  places_.erase(entry->response->id);
  entries_.erase(entry);
}

}  // namespace verbatim::serve
