#include "capi/options.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "capi/call.h"

namespace verbatim::capi {

namespace {

/// The default of each struct; `size` is left to read_options().
verbatim_load_options load_defaults() {
  return {};
}

verbatim_score_options score_defaults() {
  return {};
}

verbatim_engine_options engine_defaults() {
  const EngineOptions own;
  verbatim_engine_options options = {};
  options.max_batch = own.max_batch;
  options.prompt_cache = own.prompt_cache ? 1 : 0;
  options.prompt_rows = static_cast<int32_t>(own.prompt_rows);
  return options;
}

verbatim_generate_options generate_defaults() {
  const GenerateOptions own;
  verbatim_generate_options options = {};
  options.max_tokens = own.max_tokens;
  options.top_p = own.sampling.top_p;
  options.repetition_penalty = own.sampling.repetition_penalty;
  options.top_logprobs = -1;
  options.prefill_chunk = own.prefill_chunk;
  return options;
}

/// What the caller filled in, or the defaults for NULL. A version of the interface that adds members will
/// accept the sizes of the versions before it, and then only those bytes are the caller's; any other size
/// would end within a member.
template <typename T>
T read_options(const T* given, T options, const char* name) {
  if (given == nullptr) return options;
  if (given->size != sizeof(T)) {
    throw BadArgument(std::string("the ") + name + " options say the size " + std::to_string(given->size) +
                      ", which this version of the library does not know: verbatim_" + name +
                      "_options_init() sets it");
  }
  std::memcpy(&options, given, given->size);
  return options;
}

/// Fills in the caller's struct as read_options() will read it.
template <typename T>
void init_options(T* out, T defaults, size_t size) {
  if (out == nullptr || size < sizeof(size_t)) return;
  defaults.size = std::min(size, sizeof(T));
  std::memcpy(out, &defaults, defaults.size);
  if (size > sizeof(T)) {
    // The caller's header is newer than the library: what it adds is nothing here, and is to be refused.
    std::memset(reinterpret_cast<char*>(out) + sizeof(T), 0, size - sizeof(T));
    out->size = size;
  }
}

std::string text_or(const char* text, const char* otherwise) {
  return text == nullptr ? otherwise : text;
}

void read_sampling(const verbatim_generate_options& given, SamplingOptions& sampling) {
  for (const verbatim_logit_bias& each :
       list_of(given.logit_bias, given.logit_bias_count, "the logit biases")) {
    sampling.logit_bias.push_back({each.token, each.bias});
  }
  sampling.repetition_penalty = given.repetition_penalty;
  sampling.presence_penalty = given.presence_penalty;
  sampling.frequency_penalty = given.frequency_penalty;
  sampling.temperature = given.temperature;
  sampling.top_k = given.top_k;
  sampling.top_p = given.top_p;
  sampling.min_p = given.min_p;
  sampling.seed = given.seed;
}

void read_callbacks(const verbatim_generate_options& given, Request& request) {
  void* const user = given.user;
  if (given.filter != nullptr) {
    request.options.filter = [filter = given.filter, user](std::span<const int32_t> generated,
                                                           std::span<uint8_t> allowed) {
      const EngineCallback here;
      filter(generated.data(), generated.size(), allowed.data(), allowed.size(), user);
    };
  }
  if (given.cancelled != nullptr) {
    request.options.cancelled = [cancelled = given.cancelled, user] {
      const EngineCallback here;
      return cancelled(user) != 0;
    };
  }
  if (given.notify != nullptr) {
    request.notify = [notify = given.notify, user] {
      const EngineCallback here;
      notify(user);
    };
  }
}

}  // namespace

ModelOptions options_of(const verbatim_load_options* given) {
  const verbatim_load_options read = read_options(given, load_defaults(), "load");
  ModelOptions options;
  options.recipe = text_or(read.recipe, "auto");
  options.drafts = read.drafts != 0;
  options.threads = read.threads;
  options.progress = progress_of(read.progress, read.user);
  return options;
}

EngineOptions options_of(const verbatim_engine_options* given) {
  const verbatim_engine_options read = read_options(given, engine_defaults(), "engine");
  EngineOptions options;
  options.max_batch = read.max_batch;
  options.capacity = read.capacity;
  options.cache_bytes = read.cache_bytes;
  options.prompt_cache = read.prompt_cache != 0;
  options.cache_dir = text_or(read.cache_dir, "");
  options.prompt_rows = read.prompt_rows;
  options.threads = read.threads;
  return options;
}

ScoreOptions options_of(const verbatim_score_options* given) {
  const verbatim_score_options read = read_options(given, score_defaults(), "score");
  ScoreOptions options;
  options.top_logprobs = read.top_logprobs;
  options.reading = text_or(read.reading, "full");
  options.threads = read.threads;
  options.progress = progress_of(read.progress, read.user);
  return options;
}

Request request_of(const verbatim_generate_options* given) {
  const verbatim_generate_options read = read_options(given, generate_defaults(), "generate");
  Request request;
  request.recipe = recipe_of(read.recipe);
  request.priority = read.priority;
  GenerateOptions& options = request.options;
  read_sampling(read, options.sampling);
  options.max_tokens = read.max_tokens;
  options.ignore_eos = read.ignore_eos != 0;
  for (const char* const stop : list_of(read.stop, read.stop_count, "the stop strings")) {
    options.stop.emplace_back(&need(stop, "a stop string"));
  }
  options.stop_tokens = tokens_of(read.stop_tokens, read.stop_token_count);
  options.prefill_chunk = read.prefill_chunk;
  if (read.json_schema != nullptr && read.regex != nullptr) {
    throw Error(ErrorKind::kUsage,
                "a reply is held to a JSON schema or to a regular expression, not to both");
  }
  if (read.json_schema != nullptr) options.structure = Structure::json_schema(read.json_schema);
  if (read.regex != nullptr) options.structure = Structure::regex(read.regex);
  if (read.top_logprobs != -1) options.top_logprobs = read.top_logprobs;
  if (!(read.deadline >= 0)) throw Error(ErrorKind::kUsage, "a deadline is a number of seconds from 0 on");
  constexpr double kNever = 1e9;
  if (read.deadline > 0 && read.deadline < kNever) {
    const std::chrono::duration<double> seconds(read.deadline);
    request.deadline = std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(seconds);
  }
  read_callbacks(read, request);
  return request;
}

Recipe recipe_of(const char* name) {
  return load_recipe(text_or(name, "auto"));
}

std::function<void(double)> progress_of(verbatim_progress progress, void* user) {
  if (progress == nullptr) return {};
  return [progress, user](double fraction) {
    if (progress(fraction, user) != 0) throw GivenUp();
  };
}

}  // namespace verbatim::capi

using namespace verbatim::capi;

extern "C" {

void verbatim_load_options_init(verbatim_load_options* options, size_t size) {
  init_options(options, load_defaults(), size);
}

void verbatim_score_options_init(verbatim_score_options* options, size_t size) {
  init_options(options, score_defaults(), size);
}

void verbatim_engine_options_init(verbatim_engine_options* options, size_t size) {
  init_options(options, engine_defaults(), size);
}

void verbatim_generate_options_init(verbatim_generate_options* options, size_t size) {
  init_options(options, generate_defaults(), size);
}

}  // extern "C"
