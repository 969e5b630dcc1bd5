#include "serve/service_support.h"

namespace verbatim {
namespace {

using test::ask;
using test::get;
using test::Json;
using test::send;
using test::shared_model;
using test::shared_service;

const auto kNoLog = [](std::string_view, const std::string&) {};

/// A request for a long answer.
Json endless(int choices) {
  return {{"prompt", "def f(x):"},
          {"max_tokens", 900},
          {"n", choices},
          {"temperature", 2},
          {"logit_bias", {{"2", -100}}}};  // without an end
}

TEST(Service, ListsItsModels) {
  const Json list = get(shared_service(), "/v1/models")->json();
  ASSERT_EQ(list["data"].size(), 2u);
  EXPECT_EQ(list["data"][0]["id"], "target");
  EXPECT_EQ(list["data"][0]["object"], "model");
  EXPECT_EQ(get(shared_service(), "/v1/models/target")->json(), list["data"][0]);
  EXPECT_EQ(get(shared_service(), "/v1/models/other/name")->json()["id"], "other/name");
  EXPECT_EQ(get(shared_service(), "/v1/models/other%2Fname")->json()["id"], "other/name");
  const auto unknown = get(shared_service(), "/v1/models/gpt-4");
  EXPECT_EQ(unknown->status(), 404);
  EXPECT_EQ(unknown->json()["error"]["code"], "model_not_found");
}

TEST(Service, KnowsItsPathsAndMethods) {
  EXPECT_EQ(get(shared_service(), "/v1/nothing")->status(), 404);
  const auto method = get(shared_service(), "/v1/completions");
  EXPECT_EQ(method->status(), 405);
  EXPECT_EQ(method->header("Allow"), "POST");
  EXPECT_EQ(get(shared_service(), "/health")->json()["status"], "ok");
}

TEST(Service, RefusesModelsThatItDoesNotHave) {
  const auto answer = ask(shared_service(), "/v1/completions", {{"model", "gpt-4"}, {"prompt", "a"}});
  EXPECT_EQ(answer->status(), 404);
  EXPECT_EQ(answer->json()["error"]["param"], "model");
  EXPECT_EQ(answer->json()["error"]["code"], "model_not_found");
}

TEST(Service, TurnsTextIntoTokensAndBack) {
  const std::string text = "naïve </s> 世";
  const auto tokens = [&](bool bos, bool special) {
    return ask(shared_service(), "/tokenize",
               {{"content", text}, {"add_special", bos}, {"parse_special", special}})
        ->json()["tokens"];
  };
  EXPECT_EQ(tokens(true, true), Json(shared_model().encode(text)));
  EXPECT_EQ(tokens(false, true), Json(shared_model().encode(text, false)));
  EXPECT_EQ(ask(shared_service(), "/detokenize", {{"tokens", tokens(false, false)}})->json()["content"],
            shared_model().decode(tokens(false, false).get<std::vector<int32_t>>()));
  const Json pieces =
      ask(shared_service(), "/tokenize", {{"content", text}, {"with_pieces", true}})->json()["tokens"];
  EXPECT_EQ(pieces.size(), tokens(false, true).size());
  EXPECT_TRUE(pieces[0]["piece"].is_string());
  EXPECT_EQ(ask(shared_service(), "/detokenize", {{"tokens", {1 << 20}}})->status(), 400);
  EXPECT_EQ(ask(shared_service(), "/detokenize", {{"tokens", {-1}}})->status(), 400);
}

TEST(Embeddings, AreThoseOfTheLibrary) {
  const std::vector<std::string> texts = {"a small house", "def f(x):"};
  const Json json = ask(shared_service(), "/v1/embeddings", {{"model", "target"}, {"input", texts}})->json();
  ASSERT_EQ(json["data"].size(), 2u);
  int64_t count = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<int32_t> tokens = shared_model().encode(texts[i]);
    count += std::ssize(tokens);
    EXPECT_EQ(json["data"][i]["embedding"].get<std::vector<float>>(),
              embed(shared_model(), tokens, {.threads = 1}));
    EXPECT_EQ(json["data"][i]["index"], i);
  }
  EXPECT_EQ(json["usage"]["prompt_tokens"], count);
  EXPECT_EQ(json["verbatim"]["pooling"], "mean");
  const std::vector<int32_t> tokens = shared_model().encode(texts[0]);
  const Json last = ask(shared_service(), "/v1/embeddings", {{"input", tokens}, {"pooling", "last"}})->json();
  EXPECT_EQ(last["data"][0]["embedding"].get<std::vector<float>>(),
            embed(shared_model(), tokens, {.pooling = Pooling::kLast, .threads = 1}));
  EXPECT_EQ(last["verbatim"]["pooling"], "last");
}

TEST(Embeddings, ComeInBase64OnRequest) {
  const std::string text =
      ask(shared_service(), "/v1/embeddings", {{"input", "a small house"}, {"encoding_format", "base64"}})
          ->json()["data"][0]["embedding"];
  const std::vector<float> vector = embed(shared_model(), shared_model().encode("a small house"));
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8));
  }
  ASSERT_EQ(bytes.size(), vector.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(bytes.data(), vector.data(), bytes.size()), 0);
  EXPECT_EQ(text.size() % 4, 0u);
}

TEST(Embeddings, RefuseNothingAndTooMuch) {
  for (const Json& input : {Json(""), Json::array(), Json::array({Json::array()}), Json({"a", 1}),
                            Json({5000}), Json(std::vector<int>(600, 5))}) {
    const auto answer = ask(shared_service(), "/v1/embeddings", {{"input", input}});
    if (input == "" && answer->status() == 200) continue;  // the beginning of the sequence alone
    EXPECT_EQ(answer->status(), 400) << input;
  }
}

TEST(Service, EndsAnAnswerWhoseClientHasLeft) {
  Json request = endless(3);
  request["stream"] = true;
  const auto before = get(shared_service(), "/v1/verbatim/stats")->json()["models"][0]["generated"];
  const auto exchange = send(shared_service(), "POST", "/v1/completions", request.dump());
  ASSERT_TRUE(exchange->wait("data: "));
  exchange->leave();
  while (shared_service().unanswered() > 0) std::this_thread::yield();
  const Json stats = get(shared_service(), "/v1/verbatim/stats")->json()["models"][0];
  EXPECT_LT(stats["generated"].get<int>() - before.get<int>(), 3 * 450);
  // The engine is free for others.
  EXPECT_EQ(ask(shared_service(), "/v1/completions", {{"prompt", "a"}, {"max_tokens", 2}})->status(), 200);
}

TEST(Service, ShowsItsState) {
  ask(shared_service(), "/v1/completions",
      {{"prompt", "def f(x):"}, {"max_tokens", 20}, {"verbatim", {{"speculation", false}}}});
  ask(shared_service(), "/v1/completions", {{"prompt", "def f(x):"}, {"max_tokens", 20}});
  const Json stats = get(shared_service(), "/v1/verbatim/stats")->json();
  const Json& model = stats["models"][0];
  EXPECT_EQ(model["name"], "target");
  EXPECT_EQ(model["loaded"], true);
  EXPECT_EQ(model["recipe"], "ml-specqd");
  EXPECT_EQ(model["recipes"], Json({"ml-specqd", "auto", "plain"}));
  EXPECT_GE(model["generated"], 40);
  EXPECT_GT(model["drafted"], 0);
  EXPECT_GT(model["plain_tokens_per_second"], 0.0);
  EXPECT_GT(model["cache_bytes"], 0);
  EXPECT_EQ(stats["totals"]["drafted"], model["drafted"]);
  const std::string metrics = shared_service().metrics();
  for (const char* const name :
       {"verbatim_generated_tokens_total", "verbatim_prompt_tokens_total", "verbatim_accepted_tokens_total",
        "verbatim_requests_waiting", "verbatim_time_to_first_token_seconds_bucket",
        "verbatim_time_between_tokens_seconds_bucket"}) {
    EXPECT_NE(metrics.find(std::string(name) + "{model=\"target\""), std::string::npos) << metrics;
  }
}

TEST(ServiceLimits, TooManyChoicesAreAskedToTryAgain) {
  ServerOptions options = test::server_options();
  options.recipe = "plain";
  options.more_recipes = {};
  options.engine.max_batch = 1;
  options.max_queue = 1;
  serve::Service service(options, kNoLog);
  Json running = endless(2);
  running["stream"] = true;
  const auto first = send(service, "POST", "/v1/completions", running.dump());
  ASSERT_TRUE(first->wait("data: "));
  const auto full = ask(service, "/v1/completions", {{"prompt", "a"}, {"max_tokens", 2}});
  EXPECT_EQ(full->status(), 429);
  EXPECT_EQ(full->header("Retry-After"), "1");
  EXPECT_EQ(full->json()["error"]["type"], "rate_limit_exceeded");
  first->leave();
  while (service.unanswered() > 0) std::this_thread::yield();
  EXPECT_EQ(ask(service, "/v1/completions", {{"prompt", "a"}, {"max_tokens", 2}, {"n", 2}})->status(), 200);
}

TEST(ServiceLimits, ChoicesThatCouldNeverRunTogetherAreRefusedForGood) {
  const std::vector<std::string> prompts(200, "a");
  for (const auto& [path, body] :
       {std::pair{"/v1/completions", Json{{"prompt", prompts}, {"n", 2}, {"max_tokens", 1}}},
        std::pair{"/v1/completions",
                  Json{{"prompt", prompts}, {"n", 128}, {"echo", true}, {"logprobs", 0}}}}) {
    const auto answer = ask(shared_service(), path, body);
    EXPECT_EQ(answer->status(), 400) << answer->text();
    EXPECT_EQ(answer->json()["error"]["param"], "n");
  }
}

TEST(ServiceLimits, BodiesUnderWayMayTakeSoMuchTogether) {
  ServerOptions options = test::server_options();
  options.recipe = "plain";
  options.more_recipes = {};
  options.max_body_bytes = 1 << 20;
  serve::Service service(options, kNoLog);
  Json large = endless(1);
  large["stream"] = true;
  large["user"] = std::string(30 << 20, 'x');
  std::vector<std::shared_ptr<test::FakeExchange>> running;
  for (int i = 0; i < 2; ++i) {
    running.push_back(send(service, "POST", "/v1/completions", large.dump()));
    ASSERT_TRUE(running.back()->wait("data: "));
  }
  const auto full = ask(service, "/v1/completions", large);
  EXPECT_EQ(full->status(), 429);
  EXPECT_EQ(full->json()["error"]["code"], "queue_full");
  EXPECT_EQ(ask(service, "/v1/completions", {{"prompt", "a"}, {"max_tokens", 1}})->status(), 200);
  for (const auto& each : running) each->leave();
  while (service.unanswered() > 0) std::this_thread::yield();
  EXPECT_EQ(ask(service, "/tokenize", {{"content", large["user"]}})->status(), 400);
}

TEST(ServiceModels, OneThatCannotFitIsRefusedAtOnceAndTheOthersStay) {
  ServerOptions options = test::server_options();
  options.recipe = "plain";
  options.more_recipes = {};
  options.model_bytes = 1;
  serve::Service service(options, kNoLog);
  const auto answer = ask(service, "/v1/completions", {{"model", "other/name"}, {"prompt", "a"}});
  EXPECT_EQ(answer->status(), 503);
  EXPECT_EQ(answer->json()["error"]["code"], "model_not_loaded");
  EXPECT_EQ(get(service, "/v1/verbatim/stats")->json()["models"][0]["loaded"], true);
}

TEST(ServiceModels, NoneIsLoadedByAServiceThatEnds) {
  ServerOptions options = test::server_options();
  options.recipe = "plain";
  options.more_recipes = {};
  auto service = std::make_unique<serve::Service>(options, kNoLog);
  service->drain();
  service->cancel_all();
  service.reset();  // ends without anything that waits for a model
  service = std::make_unique<serve::Service>(options, kNoLog);
  const auto waiting =
      send(*service, "POST", "/v1/completions", Json{{"model", "other/name"}, {"prompt", "a"}}.dump());
  service.reset();
  ASSERT_TRUE(waiting->wait());
  EXPECT_EQ(waiting->answers(), 1);
}

TEST(ServiceLimits, AnAnswerThatTakesTooLongIsAnError) {
  ServerOptions options = test::server_options();
  options.recipe = "plain";
  options.more_recipes = {};
  options.request_timeout = std::chrono::seconds(0);
  serve::Service service(options, kNoLog);
  const auto whole = ask(service, "/v1/completions", endless(1));
  EXPECT_EQ(whole->status(), 504);
  Json request = endless(1);
  request["stream"] = true;
  const auto stream = ask(service, "/v1/completions", request);
  EXPECT_EQ(stream->status(), 200);
  EXPECT_TRUE(stream->events().back().contains("error")) << stream->text();
  EXPECT_EQ(ask(service, "/v1/embeddings", {{"input", "a"}})->status(), 504);
}

TEST(ServiceLimits, PromptsMayBeLimited) {
  ServerOptions options = test::server_options();
  options.recipe = "plain";
  options.more_recipes = {};
  options.max_prompt_tokens = 5;
  serve::Service service(options, kNoLog);
  const auto answer = ask(service, "/v1/completions", {{"prompt", {1, 5, 6, 7, 8, 9}}});
  EXPECT_EQ(answer->status(), 400);
  EXPECT_EQ(answer->json()["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(ask(service, "/v1/completions", {{"prompt", {1, 5, 6, 7, 8}}})->status(), 200);
}

TEST(ServiceLimits, ADrainingServiceEndsWhatRunsAndTakesNothingNew) {
  ServerOptions options = test::server_options();
  options.recipe = "plain";
  options.more_recipes = {};
  serve::Service service(options, kNoLog);
  const auto running = send(service, "POST", "/v1/completions", endless(4).dump());
  service.drain();
  EXPECT_EQ(get(service, "/health")->status(), 503);
  EXPECT_EQ(ask(service, "/v1/completions", {{"prompt", "a"}})->status(), 503);
  EXPECT_EQ(service.unanswered(), 1);
  service.cancel_all();
  ASSERT_TRUE(running->wait());
  EXPECT_EQ(running->status(), 503);
  while (service.unanswered() > 0) std::this_thread::yield();
}

TEST(ServiceModels, AreLoadedWhenTheyAreAskedForAndUnloadedWhenMemoryIsShort) {
  ServerOptions options = test::server_options();
  options.recipe = "plain";
  options.more_recipes = {};
  options.models = {{"first", test::default_model()},
                    {"second", test::default_model()},
                    {"missing", test::default_model() / "nothing"}};
  options.engine.max_batch = 1;
  options.engine.capacity = 64;
  options.model_bytes = int64_t{90} << 20;  // enough for one
  serve::Service service(options, kNoLog);
  const auto loaded = [&] {
    std::string names;
    const Json stats = get(service, "/v1/verbatim/stats")->json();
    for (const Json& model : stats["models"]) {
      if (model["loaded"].get<bool>()) names += model["name"].get<std::string>() + " ";
    }
    return names;
  };
  EXPECT_EQ(loaded(), "first ");
  const Json request = {{"prompt", "def f(x):"}, {"max_tokens", 8}, {"seed", 1}};
  const auto with = [&](const char* name) {
    Json own = request;
    own["model"] = name;
    return ask(service, "/v1/completions", own);
  };
  const Json first = with("first")->json();
  // Several that wait for the same model are all answered.
  Json own = request;
  own["model"] = "second";
  const auto waiting = send(service, "POST", "/v1/completions", own.dump());
  const Json second = with("second")->json();
  ASSERT_TRUE(waiting->wait());
  EXPECT_EQ(waiting->json()["choices"], second["choices"]);
  EXPECT_EQ(second["choices"], first["choices"]);
  EXPECT_EQ(second["model"], "second");
  EXPECT_EQ(loaded(), "second ");
  EXPECT_EQ(with("first")->json()["choices"], first["choices"]);
  EXPECT_EQ(loaded(), "first ");
  const auto missing = with("missing");
  EXPECT_EQ(missing->status(), 500);
  EXPECT_EQ(missing->json()["error"]["code"], "model_not_loaded");
  EXPECT_EQ(missing->text().find("nothing"), std::string::npos);  // paths are the server's own
}

TEST(ServiceModels, TheFirstAnswersForAnyNameIfThatIsWanted) {
  ServerOptions options = test::server_options();
  options.recipe = "plain";
  options.more_recipes = {};
  options.any_model_name = true;
  serve::Service service(options, kNoLog);
  const auto answer =
      ask(service, "/v1/completions", {{"model", "gpt-4"}, {"prompt", "a"}, {"max_tokens", 2}});
  EXPECT_EQ(answer->status(), 200);
  EXPECT_EQ(answer->json()["model"], "target");
}

}  // namespace
}  // namespace verbatim
