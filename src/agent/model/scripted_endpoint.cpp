#include "agent/model/scripted_endpoint.h"

#include <algorithm>
#include <utility>

#include "agent/json.h"

namespace verbatim::agent {

namespace {

constexpr size_t kBytesPerToken = 4;

class ScriptedStream : public ModelStream {
 public:
  ScriptedStream(Loop& loop, ScriptedRates rates, std::string text, int64_t prompt_tokens, int64_t max_tokens,
                 ModelHooks hooks)
      : loop_(loop),
        rates_(rates),
        text_(std::move(text)),
        hooks_(std::move(hooks)),
        max_tokens_(max_tokens) {
    reply_.prompt_tokens = prompt_tokens;
    start_ = loop.now() + seconds(static_cast<double>(prompt_tokens) / rates.prompt_tokens_per_second);
    wait();
  }
  ~ScriptedStream() override { loop_.forget(timer_); }

 private:
  static Duration seconds(double seconds) { return Duration(static_cast<int64_t>(seconds * 1e6)); }

  /// The n-th token comes n tokens after the prompt has been read, however late timers are.
  void wait() {
    const Time next =
        start_ + seconds(static_cast<double>(reply_.reply_tokens + 1) / rates_.tokens_per_second);
    timer_ = loop_.after(next - loop_.now(), [this] { step(); });
  }

  void step() {
    timer_ = 0;
    if (at_ == text_.size() || reply_.reply_tokens == max_tokens_) {
      reply_.cut = at_ < text_.size();
      const auto ended = hooks_.ended;
      return ended(reply_);
    }
    std::string_view piece = first_bytes(std::string_view(text_).substr(at_), kBytesPerToken);
    if (piece.empty()) piece = std::string_view(text_).substr(at_, 1);
    at_ += piece.size();
    ++reply_.reply_tokens;
    wait();
    const auto told = hooks_.piece;
    told(piece);
  }

  Loop& loop_;
  ScriptedRates rates_;
  std::string text_;
  ModelHooks hooks_;
  int64_t max_tokens_;
  ModelReply reply_;
  Time start_{0};
  size_t at_ = 0;
  uint64_t timer_ = 0;
};

}  // namespace

int64_t ScriptedEndpoint::tokens_of(std::string_view text) {
  return static_cast<int64_t>((text.size() + kBytesPerToken - 1) / kBytesPerToken);
}

std::unique_ptr<ModelStream> ScriptedEndpoint::start(ModelRequest request, ModelHooks hooks) {
  int64_t prompt = 0;
  for (const ModelMessage& message : request.messages) prompt += tokens_of(message.content);
  return std::make_unique<ScriptedStream>(loop_, rates_, script_(request), prompt, request.max_tokens,
                                          std::move(hooks));
}

}  // namespace verbatim::agent
