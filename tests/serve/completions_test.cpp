#include "serve/sampling_fields.h"
#include "serve/service_support.h"

namespace verbatim {
namespace {

using test::ask;
using test::generated;
using test::Json;
using test::shared_model;
using test::shared_service;

constexpr const char* kPrompt = "def fibonacci(n):\n";

Json completion(const Json& more = Json::object()) {
  Json request = {{"model", "target"}, {"prompt", kPrompt}, {"max_tokens", 40}, {"seed", 7}};
  request.update(more);
  return request;
}

GenerateOptions options_of(float temperature, uint64_t seed = 7, int64_t tokens = 40) {
  GenerateOptions options;
  options.sampling.temperature = temperature;
  options.sampling.seed = seed;
  options.max_tokens = tokens;
  return options;
}

TEST(Completions, AreTheEnginesBytesWithEveryRecipeWholeAndStreamed) {
  TOO_LONG_FOR_SANITIZERS();
  for (const float temperature : {0.0f, 1.0f}) {
    const GenerateResult plain = generated(shared_model().encode(kPrompt), options_of(temperature));
    for (const char* const recipe : {"plain", "ml-specqd", "auto"}) {
      for (const bool stream : {false, true}) {
        const auto answer =
            ask(shared_service(), "/v1/completions",
                completion(
                    {{"temperature", temperature}, {"stream", stream}, {"verbatim", {{"recipe", recipe}}}}));
        ASSERT_EQ(answer->status(), 200) << answer->text();
        ASSERT_EQ(answer->streamed(), stream);
        const Json last = stream ? answer->events().back() : answer->json();
        const std::string text = stream ? test::streamed_texts(answer->events())[0]
                                        : last["choices"][0]["text"].get<std::string>();
        EXPECT_EQ(text, plain.text) << recipe;
        EXPECT_EQ(last["verbatim"]["recipe"], recipe);
        EXPECT_EQ(last["verbatim"]["guarantee"], "bytes");
        EXPECT_EQ(last["verbatim"]["lossless"], true);
        EXPECT_EQ(answer->answers(), 1);
        if (stream) {
          EXPECT_TRUE(answer->text().ends_with("data: [DONE]\n\n"));
        }
      }
    }
  }
}

TEST(Completions, WithoutSpeculationDraftNothingAndSayTheSame) {
  const auto drafted = ask(shared_service(), "/v1/completions", completion())->json();
  const auto plain =
      ask(shared_service(), "/v1/completions", completion({{"verbatim", {{"speculation", false}}}}))->json();
  EXPECT_EQ(drafted["choices"], plain["choices"]);
  EXPECT_GT(drafted["verbatim"]["drafted"], 0);
  EXPECT_EQ(drafted["verbatim"]["levels"][0]["name"], "self@mxfp4-w4a8");
  EXPECT_EQ(plain["verbatim"]["drafted"], 0);
  EXPECT_EQ(plain["verbatim"]["recipe"], "plain");
}

TEST(Completions, OfSeveralChoicesAndPromptsHaveTheirOwnSeedsAndPlaces) {
  const Json request = completion({{"prompt", {kPrompt, "import os"}}, {"n", 2}, {"max_tokens", 12}});
  const Json whole = ask(shared_service(), "/v1/completions", request)->json();
  Json streaming = request;
  streaming["stream"] = true;
  const auto streamed = test::streamed_texts(ask(shared_service(), "/v1/completions", streaming)->events());
  ASSERT_EQ(whole["choices"].size(), 4u);
  for (int i = 0; i < 4; ++i) {
    const char* const prompt = i < 2 ? kPrompt : "import os";
    const GenerateResult alone =
        generated(shared_model().encode(prompt), options_of(1.0f, 7 + static_cast<uint64_t>(i % 2), 12));
    EXPECT_EQ(whole["choices"][static_cast<size_t>(i)]["index"], i);
    EXPECT_EQ(whole["choices"][static_cast<size_t>(i)]["text"], alone.text);
    EXPECT_EQ(streamed.at(i), alone.text);
  }
  EXPECT_EQ(whole["usage"]["prompt_tokens"],
            shared_model().encode(kPrompt).size() + shared_model().encode("import os").size());
}

TEST(Completions, OfTokensAreThoseOfTheText) {
  const Json tokens = shared_model().encode(kPrompt);
  const Json by_text = ask(shared_service(), "/v1/completions", completion())->json();
  const Json by_tokens = ask(shared_service(), "/v1/completions", completion({{"prompt", tokens}}))->json();
  const Json by_list =
      ask(shared_service(), "/v1/completions", completion({{"prompt", Json::array({tokens})}}))->json();
  EXPECT_EQ(by_text["choices"], by_tokens["choices"]);
  EXPECT_EQ(by_text["choices"], by_list["choices"]);
}

TEST(Completions, TellTheLogprobsThatScoringTells) {
  const auto answer = ask(shared_service(), "/v1/completions",
                          completion({{"logprobs", 3}, {"max_tokens", 10}, {"echo", true}}));
  ASSERT_EQ(answer->status(), 200) << answer->text();
  const Json choice = answer->json()["choices"][0];
  std::vector<int32_t> tokens = shared_model().encode(kPrompt);
  const GenerateResult plain = generated(tokens, options_of(1.0f, 7, 10));
  tokens.insert(tokens.end(), plain.tokens.begin(), plain.tokens.end());
  if (tokens.back() == shared_model().eos_tokens().front()) tokens.pop_back();
  const std::vector<ScoredToken> scored = score(shared_model(), tokens, {.top_logprobs = 3, .threads = 2});
  EXPECT_EQ(choice["text"], kPrompt + plain.text);
  // The beginning of the sequence is left out, so that every token of the text has a number.
  const Json& list = choice["logprobs"];
  ASSERT_EQ(list["token_logprobs"].size(), scored.size());
  std::string text;
  for (size_t i = 0; i < scored.size(); ++i) {
    EXPECT_EQ(list["token_logprobs"][i].get<double>(), scored[i].logprob);
    EXPECT_EQ(list["top_logprobs"][i].size(), 3u);
    EXPECT_EQ(list["text_offset"][i], text.size());
    text += list["tokens"][i].get<std::string>();
  }
  EXPECT_EQ(text, choice["text"]);
}

TEST(Completions, StreamTheLogprobsOfTheWhole) {
  Json request = completion({{"logprobs", 2}, {"max_tokens", 12}, {"echo", true}});
  const Json whole = ask(shared_service(), "/v1/completions", request)->json()["choices"][0]["logprobs"];
  request["stream"] = true;
  Json joined = {{"tokens", Json::array()},
                 {"token_logprobs", Json::array()},
                 {"top_logprobs", Json::array()},
                 {"text_offset", Json::array()}};
  for (const Json& event : ask(shared_service(), "/v1/completions", request)->events()) {
    const Json& part = event["choices"][0]["logprobs"];
    if (part.is_null()) continue;
    for (auto& [name, list] : joined.items()) {
      for (const Json& each : part[name]) list.push_back(each);
    }
  }
  EXPECT_EQ(joined, whole);
}

TEST(Completions, EndBeforeAStopTextAndSayWhyTheyEnded) {
  const std::string text = generated(shared_model().encode(kPrompt), options_of(0.0f)).text;
  const std::string stop = text.substr(text.size() / 2, 4);
  const Json stopped =
      ask(shared_service(), "/v1/completions", completion({{"temperature", 0}, {"stop", stop}}))
          ->json()["choices"][0];
  EXPECT_EQ(stopped["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(stopped["finish_reason"], "stop");
  const Json full =
      ask(shared_service(), "/v1/completions", completion({{"max_tokens", 3}}))->json()["choices"][0];
  EXPECT_EQ(full["finish_reason"], "length");
}

TEST(Completions, RememberBeginningsAndSaySo) {
  std::string prompt;
  while (shared_model().encode(prompt).size() < 300) prompt += "import sys\nimport json\n";
  const Json request = completion({{"prompt", prompt}, {"max_tokens", 2}});
  ask(shared_service(), "/v1/completions", request);
  const Json usage = ask(shared_service(), "/v1/completions", request)->json()["usage"];
  EXPECT_EQ(usage["prompt_tokens"], shared_model().encode(prompt).size());
  EXPECT_GT(usage["prompt_tokens_details"]["cached_tokens"], 100);
  EXPECT_LT(usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]);
  EXPECT_EQ(usage["total_tokens"], usage["prompt_tokens"].get<int>() + usage["completion_tokens"].get<int>());
}

TEST(Completions, EchoAPromptWithoutGeneratingAnything) {
  const Json json =
      ask(shared_service(), "/v1/completions", completion({{"echo", true}, {"max_tokens", 0}}))->json();
  EXPECT_EQ(json["choices"][0]["text"], kPrompt);
  EXPECT_EQ(json["usage"]["completion_tokens"], 0);
  EXPECT_EQ(json["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

TEST(Completions, TellTheSeedThatWasDrawn) {
  Json request = completion();
  request.erase("seed");
  const Json drawn = ask(shared_service(), "/v1/completions", request)->json();
  request["seed"] = drawn["verbatim"]["seed"];
  const auto again = ask(shared_service(), "/v1/completions", request);
  EXPECT_EQ(again->json()["choices"], drawn["choices"]) << again->text();
  request.erase("seed");
  EXPECT_NE(ask(shared_service(), "/v1/completions", request)->json()["verbatim"]["seed"],
            drawn["verbatim"]["seed"]);
}

// A seed above the field's limit was drawn once in 1,250 times, and could not be given back.
TEST(Completions, DrawSeedsThatTheFieldTakesAgain) {
  const Json nothing = Json::object();
  const serve::Fields fields(nothing, serve::kSamplingFields);
  for (int i = 0; i < 20000; ++i) {
    Json again = {{"seed", serve::read_sampling(fields, shared_model()).seed}};
    ASSERT_NO_THROW(serve::Fields(again, serve::kSamplingFields)) << again.dump();
  }
}

TEST(Completions, TellWhereTokensOfAStreamCameFrom) {
  const auto answer =
      ask(shared_service(), "/v1/completions",
          completion({{"stream", true}, {"verbatim", {{"origins", true}}}, {"temperature", 0}}));
  const std::vector<Json> events = answer->events();
  size_t bytes = 0;
  int64_t drafted = 0;
  for (const Json& event : events) {
    if (!event.contains("verbatim") || !event["verbatim"].contains("tokens")) continue;
    for (const Json& token : event["verbatim"]["tokens"]) {
      bytes += token["bytes"].get<size_t>();
      if (token["origin"] == "plain") continue;
      drafted += token["origin"] == "drafted" ? 1 : 0;
      EXPECT_EQ(token["level"], "self@mxfp4-w4a8");
      EXPECT_LE(token["confidence"], 1.0);
    }
  }
  EXPECT_EQ(bytes, test::streamed_texts(events)[0].size());
  EXPECT_EQ(drafted, events.back()["verbatim"]["accepted"]);
  EXPECT_GT(drafted, 0);
}

TEST(Completions, CountTokensInTheLastChunkOnRequest) {
  const Json request = completion({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  const std::vector<Json> events = ask(shared_service(), "/v1/completions", request)->events();
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_GT(events.back()["usage"]["completion_tokens"], 0);
  EXPECT_FALSE(events.back().contains("verbatim"));
  EXPECT_TRUE(events.front()["usage"].is_null());
}

TEST(Completions, RefuseWhatDoesNotFit) {
  const auto too_long =
      ask(shared_service(), "/v1/completions", completion({{"prompt", Json(std::vector<int>(512, 5))}}));
  EXPECT_EQ(too_long->status(), 400);
  EXPECT_EQ(too_long->json()["error"]["code"], "context_length_exceeded");
  const auto suffix = ask(shared_service(), "/v1/completions", completion({{"suffix", "\n"}}));
  EXPECT_EQ(suffix->status(), 400);
  EXPECT_EQ(suffix->json()["error"]["param"], "suffix");
  const auto recipe =
      ask(shared_service(), "/v1/completions", completion({{"verbatim", {{"recipe", "early-exit"}}}}));
  EXPECT_EQ(recipe->status(), 400);
  EXPECT_EQ(recipe->json()["error"]["param"], "verbatim.recipe");
  const auto bias = ask(shared_service(), "/v1/completions", completion({{"logit_bias", {{"99999", 1}}}}));
  EXPECT_EQ(bias->status(), 400);
  EXPECT_EQ(bias->json()["error"]["param"], "logit_bias");
}

TEST(Completions, TakeEverySettingOfSampling) {
  const int32_t banned = generated(shared_model().encode(kPrompt), options_of(0.0f)).tokens.front();
  const Json json = ask(shared_service(), "/v1/completions",
                        completion({{"temperature", 0.8},
                                    {"top_p", 0.9},
                                    {"top_k", 50},
                                    {"min_p", 0.01},
                                    {"presence_penalty", 0.5},
                                    {"frequency_penalty", 0.25},
                                    {"repetition_penalty", 1.1},
                                    {"logit_bias", {{std::to_string(banned), -100}, {"17", 1.5}}}}))
                        ->json();
  GenerateOptions options = options_of(0.8f);
  options.sampling.top_p = 0.9f;
  options.sampling.top_k = 50;
  options.sampling.min_p = 0.01f;
  options.sampling.presence_penalty = 0.5f;
  options.sampling.frequency_penalty = 0.25f;
  options.sampling.repetition_penalty = 1.1f;
  options.sampling.logit_bias = {{banned, -std::numeric_limits<float>::infinity()}, {17, 1.5f}};
  EXPECT_EQ(json["choices"][0]["text"], generated(shared_model().encode(kPrompt), options).text);
}

}  // namespace
}  // namespace verbatim
