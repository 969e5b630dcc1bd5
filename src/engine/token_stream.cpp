#include "engine/token_stream.h"

#include <utility>

namespace verbatim {

void TokenStream::State::push(std::string_view text, const GenerateResult& result, size_t first) {
  {
    const std::lock_guard lock(mutex);
    pending.text += text;
    const auto from = static_cast<ptrdiff_t>(first);
    const auto to = static_cast<ptrdiff_t>(result.tokens.size());
    pending.tokens.insert(pending.tokens.end(), result.tokens.begin() + from, result.tokens.end());
    if (!result.logprobs.empty()) {
      pending.logprobs.insert(pending.logprobs.end(), result.logprobs.begin() + from,
                              result.logprobs.begin() + to);
    }
    if (!result.origins.empty()) {
      pending.origins.insert(pending.origins.end(), result.origins.begin() + from,
                             result.origins.begin() + to);
    }
    changed.notify_all();
  }
  tell();
}

void TokenStream::State::finish(GenerateResult&& answer) {
  {
    const std::lock_guard lock(mutex);
    result = std::move(answer);
    done = true;
    changed.notify_all();
  }
  tell();
}

void TokenStream::State::fail(std::exception_ptr reason) {
  {
    const std::lock_guard lock(mutex);
    error = std::move(reason);
    done = true;
    changed.notify_all();
  }
  tell();
}

void TokenStream::State::tell() const {
  if (notify) notify();
}

std::optional<TokenStream::Piece> TokenStream::next() {
  std::unique_lock lock(state_->mutex);
  Piece& pending = state_->pending;
  const auto something = [&] { return !pending.text.empty() || !pending.tokens.empty(); };
  state_->changed.wait(lock, [&] { return state_->done || something(); });
  if (!something()) return std::nullopt;
  return std::exchange(pending, {});
}

std::optional<TokenStream::Piece> TokenStream::poll() {
  const std::lock_guard lock(state_->mutex);
  Piece& pending = state_->pending;
  if (pending.text.empty() && pending.tokens.empty()) return std::nullopt;
  return std::exchange(pending, {});
}

GenerateResult TokenStream::wait() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->done; });
  if (state_->error) std::rethrow_exception(state_->error);
  return std::move(state_->result);
}

void TokenStream::cancel() {
  state_->cancelled = true;
}

bool TokenStream::done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

}  // namespace verbatim
