#include "agent/model/engine_endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "agent/model/conversation.h"
#include "verbatim/error.h"

namespace verbatim::agent {

namespace {

using Clock = std::chrono::steady_clock;

/// A request that the engine answers. The function that the engine rings keeps it, so that it outlives
/// whoever waits for it, and is counted however it ends.
class Asked {
 public:
  Asked(RealLoop& loop, EngineWatch watch, std::function<void()> look)
      : loop_(&loop), look_(std::move(look)), watch_(std::move(watch)) {}

  /// Passes what the engine's thread tells on to the loop, as long as somebody listens.
  void ring() {
    const std::lock_guard lock(mutex_);
    if (loop_ != nullptr) {
      loop_->post(look_);
    } else {
      count_if_done();
    }
  }

  void begin(TokenStream stream, int64_t prompt_tokens) {
    const std::lock_guard lock(mutex_);
    prompt_tokens_ = prompt_tokens;
    stream_.emplace(std::move(stream));
  }

  /// Ends the request early. Nobody waits for it: the engine may be in the middle of a pass.
  void abandon() {
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
    if (!stream_) return;
    stream_->cancel();
    count_if_done();
  }

  // For the one who listens.
  bool begun() const { return stream_.has_value(); }
  bool done() const { return stream_->done(); }
  std::optional<TokenStream::Piece> poll() {
    std::optional<TokenStream::Piece> piece = stream_->poll();
    if (piece && !piece->tokens.empty()) {
      const Clock::time_point now = Clock::now();
      if (watch_.tokens) {
        watch_.tokens(std::ssize(piece->tokens), !begun_, std::chrono::duration<double>(now - last_).count());
      }
      begun_ = true;
      last_ = now;
    }
    return piece;
  }
  /// The result of a request that is done; to be called once.
  GenerateResult result() {
    const std::lock_guard lock(mutex_);
    return take_result();
  }

 private:
  GenerateResult take_result() {
    TokenStream stream = std::move(*stream_);
    stream_.reset();  // which holds this object by the function that it rings
    GenerateResult result = stream.wait();
    if (watch_.ended) watch_.ended(result, prompt_tokens_);
    return result;
  }

  void count_if_done() {
    if (!stream_ || !stream_->done()) return;
    while (poll()) {
    }
    try {
      take_result();
    } catch (const std::exception&) {
      // Nobody is interested in the reply any more.
    }
  }

  std::mutex mutex_;
  RealLoop* loop_;  // null: nobody listens any more
  std::function<void()> look_;
  EngineWatch watch_;
  std::optional<TokenStream> stream_;
  int64_t prompt_tokens_ = 0;
  bool begun_ = false;
  Clock::time_point last_ = Clock::now();
};

class EngineStream : public ModelStream {
 public:
  EngineStream(RealLoop& loop, ModelHooks hooks, const EngineWatch& watch)
      : hooks_(std::move(hooks)), asked_(std::make_shared<Asked>(loop, watch, [alive = alive_, this] {
          if (*alive) look();
        })) {}
  ~EngineStream() override {
    *alive_ = false;
    asked_->abandon();
  }

  void submit(Conversation& conversation, Engine& engine, const Recipe& recipe, const ModelRequest& request,
              int64_t context) {
    try {
      Request wanted{.prompt = {}, .options = {}, .recipe = recipe};
      wanted.prompt = conversation.tokens(request.messages, context);
      wanted.options.max_tokens = request.max_tokens;
      wanted.options.sampling.temperature = static_cast<float>(request.temperature);
      wanted.options.sampling.seed = request.seed;
      wanted.options.structure = request.structure;
      wanted.options.origins = true;
      conversation.add_stops(wanted.options);
      reply_.prompt_tokens = static_cast<int64_t>(wanted.prompt.size());
      wanted.notify = [asked = asked_] { asked->ring(); };
      asked_->begin(engine.submit(std::move(wanted)), reply_.prompt_tokens);
    } catch (const Error& error) {
      reply_.error = error.what();
    }
    asked_->ring();
  }

 private:
  void look() {
    if (ended_) return;
    if (asked_->begun()) {
      const bool done = asked_->done();
      while (std::optional<TokenStream::Piece> piece = asked_->poll()) {
        for (const TokenOrigin& origin : piece->origins) {
          if (origin.level == TokenOrigin::kStructure) ++reply_.structure_tokens;
        }
        const std::shared_ptr<bool> alive = alive_;
        if (!piece->text.empty()) hooks_.piece(piece->text);
        if (!*alive) return;
      }
      if (!done) return;
      read_result();
    }
    ended_ = true;
    const auto ended = hooks_.ended;
    ended(reply_);
  }

  void read_result() {
    try {
      const Stats stats = asked_->result().stats;
      reply_.reply_tokens = stats.generated_tokens;
      if (stats.generated_tokens > 0)
        reply_.cached_tokens = std::max<int64_t>(0, reply_.prompt_tokens - stats.prompt_tokens);
      reply_.cut = stats.finish == FinishReason::kLength;
      if (stats.finish == FinishReason::kContext)
        reply_.error = "the model's context is full; it holds no longer prompt and reply";
    } catch (const std::exception& error) {
      reply_.error = error.what();
    }
  }

  ModelHooks hooks_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::shared_ptr<Asked> asked_;
  ModelReply reply_;
  bool ended_ = false;
};

class EngineEndpoint : public Endpoint {
 public:
  EngineEndpoint(RealLoop& loop, const Model& model, Engine& engine, Recipe recipe,
                 EngineEndpointOptions options)
      : loop_(loop),
        engine_(engine),
        recipe_(std::move(recipe)),
        options_(std::move(options)),
        conversation_(model) {
    const int64_t most = model.context();
    options_.context = options_.context > 0 ? std::min(options_.context, most) : most;
  }
  bool constrains() const override { return true; }
  std::optional<int64_t> room(const std::vector<ModelMessage>& messages) const override {
    int64_t tokens = 0;
    try {
      tokens = std::ssize(conversation_.tokens(messages, options_.context));
    } catch (const PromptTooLong&) {
      return 0;
    }
    if (options_.max_prompt_tokens > 0 && tokens > options_.max_prompt_tokens) {
      throw PromptTooLong(fmt::format("the prompt has {} tokens; this server takes {} at most", tokens,
                                      options_.max_prompt_tokens));
    }
    return options_.context - tokens;
  }
  std::unique_ptr<ModelStream> start(ModelRequest request, ModelHooks hooks) override {
    auto stream = std::make_unique<EngineStream>(loop_, std::move(hooks), options_.watch);
    stream->submit(conversation_, engine_, recipe_, request, options_.context);
    return stream;
  }

 private:
  RealLoop& loop_;
  Engine& engine_;
  Recipe recipe_;
  EngineEndpointOptions options_;
  mutable Conversation conversation_;  // what it remembers saves time and changes nothing
};

}  // namespace

std::unique_ptr<Endpoint> engine_endpoint(RealLoop& loop, const Model& model, Engine& engine,
                                          const Recipe& recipe, EngineEndpointOptions options) {
  return std::make_unique<EngineEndpoint>(loop, model, engine, recipe, std::move(options));
}

}  // namespace verbatim::agent
