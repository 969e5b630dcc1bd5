#include "agent/model/engine_endpoint.h"

#include <algorithm>
#include <mutex>

#include "verbatim/chat.h"
#include "verbatim/error.h"

namespace verbatim::agent {

namespace {

/// Passes what an engine's thread tells on to the loop, as long as somebody listens.
struct Bell {
  std::mutex mutex;
  RealLoop* loop = nullptr;  // null: nobody listens any more
  std::function<void()> ring;
};

Chat conversation(const Model& model, const std::vector<ModelMessage>& messages) {
  const bool has_system = !messages.empty() && messages.front().role == "system";
  Chat chat(model, has_system ? messages.front().content : std::string());
  for (size_t i = has_system ? 1 : 0; i < messages.size(); ++i) {
    if (messages[i].role == "assistant") {
      chat.add_reply(messages[i].content);
    } else {
      chat.add_user(messages[i].content);
    }
  }
  return chat;
}

class EngineStream : public ModelStream {
 public:
  EngineStream(RealLoop& loop, ModelHooks hooks) : hooks_(std::move(hooks)), bell_(std::make_shared<Bell>()) {
    bell_->loop = &loop;
  }
  ~EngineStream() override {
    {
      const std::lock_guard lock(bell_->mutex);
      bell_->loop = nullptr;
    }
    *alive_ = false;
    if (!stream_) return;
    stream_->cancel();
    try {
      stream_->wait();
    } catch (const std::exception&) {
      // Nobody is interested in the reply any more.
    }
  }

  void submit(const Model& model, Engine& engine, const Recipe& recipe, const ModelRequest& request) {
    try {
      Request wanted{.prompt = {}, .options = {}, .recipe = recipe};
      Chat chat = conversation(model, request.messages);
      wanted.prompt = chat.tokens();
      wanted.options.max_tokens = request.max_tokens;
      wanted.options.sampling.temperature = static_cast<float>(request.temperature);
      wanted.options.sampling.seed = request.seed;
      wanted.options.structure = request.structure;
      wanted.options.origins = true;
      chat.add_stops(wanted.options);
      reply_.prompt_tokens = static_cast<int64_t>(wanted.prompt.size());
      wanted.notify = [bell = bell_, alive = alive_, this] {
        const std::lock_guard lock(bell->mutex);
        if (!bell->loop) return;
        bell->loop->post([alive, this] {
          if (*alive) look();
        });
      };
      stream_.emplace(engine.submit(std::move(wanted)));
    } catch (const Error& error) {
      reply_.error = error.what();
    }
    const std::lock_guard lock(bell_->mutex);
    bell_->loop->post([alive = alive_, this] {
      if (*alive) look();
    });
  }

 private:
  void look() {
    if (ended_) return;
    if (stream_) {
      const bool done = stream_->done();
      while (std::optional<TokenStream::Piece> piece = stream_->poll()) {
        reply_.reply_tokens += static_cast<int64_t>(piece->tokens.size());
        for (const TokenOrigin& origin : piece->origins) {
          if (origin.level == TokenOrigin::kStructure) ++reply_.structure_tokens;
        }
        const std::shared_ptr<bool> alive = alive_;
        if (!piece->text.empty()) hooks_.piece(piece->text);
        if (!*alive) return;
      }
      if (!done) return;
      try {
        const FinishReason finish = stream_->wait().stats.finish;
        reply_.cut = finish == FinishReason::kLength;
        if (finish == FinishReason::kContext)
          reply_.error = "the model's context is full; it holds no longer prompt and reply";
      } catch (const std::exception& error) {
        reply_.error = error.what();
      }
      stream_.reset();
    }
    ended_ = true;
    const auto ended = hooks_.ended;
    ended(reply_);
  }

  ModelHooks hooks_;
  std::shared_ptr<Bell> bell_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::optional<TokenStream> stream_;
  ModelReply reply_;
  bool ended_ = false;
};

class EngineEndpoint : public Endpoint {
 public:
  EngineEndpoint(RealLoop& loop, const Model& model, Engine& engine, Recipe recipe, int64_t context)
      : loop_(loop),
        model_(model),
        engine_(engine),
        recipe_(std::move(recipe)),
        context_(context > 0 ? std::min<int64_t>(context, model.context()) : model.context()) {}
  bool constrains() const override { return true; }
  std::optional<int64_t> room(const std::vector<ModelMessage>& messages) const override {
    try {
      return context_ - std::ssize(conversation(model_, messages).tokens());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kBadInput) throw;
      return 0;  // the prompt does not fit
    }
  }
  std::unique_ptr<ModelStream> start(ModelRequest request, ModelHooks hooks) override {
    auto stream = std::make_unique<EngineStream>(loop_, std::move(hooks));
    stream->submit(model_, engine_, recipe_, request);
    return stream;
  }

 private:
  RealLoop& loop_;
  const Model& model_;
  Engine& engine_;
  Recipe recipe_;
  int64_t context_;
};

}  // namespace

std::unique_ptr<Endpoint> engine_endpoint(RealLoop& loop, const Model& model, Engine& engine,
                                          const Recipe& recipe, int64_t context) {
  return std::make_unique<EngineEndpoint>(loop, model, engine, recipe, context);
}

}  // namespace verbatim::agent
