#include "serve/routes.h"

#include "serve/anthropic/endpoints.h"
#include "serve/openai/endpoints.h"
#include "serve/responses/endpoints.h"

namespace verbatim::serve {

namespace {

/// A path and the method that it takes. A path that ends with a slash stands for all paths below it.
struct Route {
  std::string_view method;
  std::string_view path;
  Endpoint endpoint;
};

std::string_view below(const Call& call, std::string_view path) {
  return std::string_view(call.request().path).substr(path.size());
}

const std::vector<Route>& routes() {
  static const std::vector<Route> all = {
      {"GET", "/health", [](const Context&, const std::shared_ptr<Call>&) {}},
      {"GET", "/v1/models", list_models},
      {"GET", "/v1/models/",
       [](const Context& context, const std::shared_ptr<Call>& call) {
         show_model(context, call, below(*call, "/v1/models/"));
       }},
      {"POST", "/v1/completions", completions},
      {"POST", "/v1/chat/completions", chat_completions},
      {"POST", "/v1/embeddings", embeddings},
      {"POST", "/v1/responses", responses},
      {"GET", "/v1/responses/",
       [](const Context& context, const std::shared_ptr<Call>& call) {
         show_response(context, call, below(*call, "/v1/responses/"));
       }},
      {"DELETE", "/v1/responses/",
       [](const Context& context, const std::shared_ptr<Call>& call) {
         delete_response(context, call, below(*call, "/v1/responses/"));
       }},
      {"POST", "/v1/messages", messages},
      {"POST", "/v1/messages/count_tokens", count_message_tokens},
      {"POST", "/tokenize", tokenize},
      {"POST", "/detokenize", detokenize},
      {"GET", "/v1/verbatim/stats", show_stats},
  };
  return all;
}

bool leads_to(const Route& route, std::string_view path) {
  if (!route.path.ends_with('/')) return path == route.path;
  return path.size() > route.path.size() && path.starts_with(route.path);
}

}  // namespace

Endpoint find_route(const HttpRequest& request) {
  std::string methods;
  for (const Route& route : routes()) {
    if (!leads_to(route, request.path)) continue;
    if (route.method == request.method) return route.endpoint;
    methods += (methods.empty() ? "" : ", ") + std::string(route.method);
  }
  if (methods.empty()) {
    throw HttpError(404, fmt::format("this server has nothing at {}", shown(request.path, 100)), {},
                    "not_found");
  }
  HttpError error(405, fmt::format("{} takes {} only", shown(request.path, 100), methods), {},
                  "method_not_allowed");
  error.headers.emplace_back("Allow", methods);
  throw error;
}

}  // namespace verbatim::serve
