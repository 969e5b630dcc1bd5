#pragma once

#include "serve/fake_exchange.h"
#include "support/speculative_text.h"
#include "support/test_data.h"

namespace verbatim::test {

/// A service that has a server `s` with a tool `t`, and answers every question at once.
class ToolsOfATest : public AgentService {
 public:
  const std::vector<AgentToolServer>& servers() const override { return servers_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  int64_t start(AgentQuestion /*question*/, AgentQuestionHooks hooks) override {
    hooks.ended({.text = "an answer"});
    return 1;
  }
  void cancel(int64_t /*question*/) override {}

 private:
  std::vector<AgentToolServer> servers_ = {
      {.label = "s", .tools = {{.name = "t", .plan_name = "t", .parameters = "{}"}}}};
  std::vector<std::string> warnings_;
};

/// Options of a server with the default model under two names, and the tools of ToolsOfATest.
inline ServerOptions server_options() {
  measure_apart();
  ServerOptions options;
  options.models = {{"target", default_model()}, {"other/name", default_model()}};
  options.recipe = "ml-specqd";
  options.more_recipes = {"auto", "plain"};
  options.engine = {.max_batch = 4, .capacity = 512, .threads = 2};
  options.tools = std::make_shared<ToolsOfATest>();
  return options;
}

/// A service with the default model, which the tests of a process share.
inline serve::Service& shared_service() {
  static serve::Service service(server_options(), [](std::string_view, const std::string&) {});
  return service;
}

/// The same model, to ask its engine directly.
inline const Model& shared_model() {
  static const Model model = [] {
    measure_apart();
    return Model::load(default_model(),
                       {.recipes = {load_recipe("ml-specqd"), load_recipe("auto"), load_recipe("plain")}});
  }();
  return model;
}

/// What an engine answers to a prompt by itself.
inline GenerateResult generated(const std::vector<int32_t>& prompt, GenerateOptions options,
                                const char* recipe = "plain") {
  static Engine engine(shared_model(), {.max_batch = 1, .capacity = 512, .threads = 2});
  return engine.generate({prompt, std::move(options), load_recipe(recipe)});
}

/// The whole text of a stream's chunks, by choice.
inline std::map<int, std::string> streamed_texts(const std::vector<Json>& events) {
  std::map<int, std::string> texts;
  for (const Json& event : events) {
    for (const Json& choice : event["choices"]) {
      std::string& text = texts[choice["index"].get<int>()];
      if (choice.contains("text")) text += choice["text"].get<std::string>();
      if (choice.contains("delta") && choice["delta"].contains("content")) {
        text += choice["delta"]["content"].get<std::string>();
      }
    }
  }
  return texts;
}

/// The types of a stream's events, of neighbours of one type the first alone.
inline std::vector<std::string> types_of(const std::vector<Json>& events) {
  std::vector<std::string> types;
  for (const Json& event : events) {
    const std::string type = event["type"].get<std::string>();
    if (types.empty() || types.back() != type) types.push_back(type);
  }
  return types;
}

}  // namespace verbatim::test
