#include "serve/transport/request_id.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include "serve/target.h"

namespace verbatim::serve {

std::string request_id(std::string_view from_client) {
  if (is_request_id(from_client)) return std::string(from_client);
  unsigned char bytes[12] = {};
  RAND_bytes(bytes, sizeof bytes);
  std::string id = "req_";
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

}  // namespace verbatim::serve
