#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/conversation.h"

namespace verbatim::serve {

/// A response that later requests may continue.
struct StoredResponse {
  std::string id;
  std::string json;               ///< the response as its client got it
  std::vector<Message> messages;  ///< the conversation up to its end, without the request's `instructions`
};

/// Keeps the last responses in memory: what was not used for the longest time is forgotten when there are too
/// many or they take too much memory. All members may be called from several threads.
class ResponseStore {
 public:
  /// `most` responses, of `most_bytes` together.
  explicit ResponseStore(int64_t most, int64_t most_bytes = int64_t{256} << 20);

  void add(StoredResponse response);
  /// The response of an id, which counts as used now; null if there is none, or no longer.
  std::shared_ptr<const StoredResponse> find(const std::string& id) const;
  /// Forgets a response; false if there was none.
  bool remove(const std::string& id);

 private:
  struct Entry {
    std::shared_ptr<const StoredResponse> response;
    int64_t bytes = 0;
  };
  void drop(std::list<Entry>::iterator entry);

  int64_t most_;
  int64_t most_bytes_;
  mutable std::mutex mutex_;
  mutable std::list<Entry> entries_;  // the one that was used last is first
  std::map<std::string, std::list<Entry>::iterator> places_;
  int64_t bytes_ = 0;
};

}  // namespace verbatim::serve
