#include "engine/perplexity.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/processors.h"
#include "base/stopwatch.h"
#include "drafting/evaluator.h"
#include "engine/model_access.h"
#include "kv/make_cache.h"
#include "text/same_vocabulary.h"
#include "verbatim/text.h"

namespace verbatim {

namespace {

constexpr int64_t kPassRows = 512;
constexpr int64_t kDefaultWindow = 1024;

/// A softmax: the probability of token t is exp(logits[t] - largest) / sum.
struct Softmax {
  explicit Softmax(std::span<const float> logits_) : logits(logits_) {
    const auto at = std::max_element(logits.begin(), logits.end());
    best = static_cast<size_t>(at - logits.begin());
    largest = *at;
    for (const float logit : logits) sum += std::exp(logit - largest);
    log_sum = std::log(sum);
  }
  double probability(size_t token) const { return std::exp(logits[token] - largest) / sum; }
  double nll(size_t token) const { return log_sum - (logits[token] - largest); }

  std::span<const float> logits;
  size_t best = 0;
  double largest = 0;
  double sum = 0;
  double log_sum = 0;
};

/// A model in one reading, evaluating window after window.
class Scorer {
 public:
  Scorer(const Decoder& decoder, const Scoring& scoring, int64_t capacity, ThreadTeam& team)
      : evaluator_(decoder, team),
        kind_(scoring.reading),
        sequence_{{}, make_cache(scoring.cache, decoder.cache_shape(), capacity)} {
    kind_.cache = scoring.cache_part;
  }

  void begin(const std::vector<int32_t>& tokens) {
    sequence_.tokens = tokens;
    sequence_.cache->set_length(0);
  }
  int64_t most_rows() const { return sequence_.cache->most_rows(); }
  Matrix<const float> evaluate(int64_t first, int64_t end, int64_t logits) {
    const std::span<const int32_t> tokens(sequence_.tokens.data(), static_cast<size_t>(end));
    return evaluator_.evaluate(tokens, first, logits, kind_, *sequence_.cache);
  }

 private:
  Evaluator evaluator_;
  PassKind kind_;
  Sequence sequence_;
};

/// Scores the window's tokens from `first_scored` ≥ 1 on.
void score_window(const std::vector<int32_t>& window, int64_t first_scored, Scorer& scorer, Scorer* other,
                  ThreadTeam& team, const std::function<void(int64_t)>& advance,
                  std::vector<TokenScore>& scores) {
  scorer.begin(window);
  if (other != nullptr) other->begin(window);
  // The row of a token predicts the next one, so that the last has nothing left to say.
  const auto rows = static_cast<int64_t>(window.size()) - 1;
  const int64_t most =
      std::min({kPassRows, scorer.most_rows(), other != nullptr ? other->most_rows() : kPassRows});
  for (int64_t first = 0; first < rows; first += most) {
    const int64_t end = std::min(rows, first + most);
    const int64_t wanted = std::clamp<int64_t>(end - (first_scored - 1), 0, end - first);
    const Matrix<const float> logits = scorer.evaluate(first, end, wanted);
    const Matrix<const float> others =
        other != nullptr ? other->evaluate(first, end, wanted) : Matrix<const float>();
    const size_t done = scores.size();
    scores.resize(done + static_cast<size_t>(wanted));
    team.split(wanted, [&](int64_t begin, int64_t stop) {
      for (int64_t r = begin; r < stop; ++r) {
        const int32_t token = window[static_cast<size_t>(end - wanted + r + 1)];
        scores[done + static_cast<size_t>(r)] = score_prediction(
            logits.row_span(r), token, others.rows == 0 ? std::span<const float>() : others.row_span(r));
      }
    });
    advance(end - first);
  }
}

/// A window and a stride that fit the model. Both count a beginning-of-sequence token only in the window.
void check_sizes(PerplexityResult& result, const PerplexityOptions& options, int64_t context, int64_t past) {
  result.window = options.window != 0 ? options.window : std::min(context, kDefaultWindow);
  if (result.window < 2)
    bad_input("a window of {} tokens is too short: at least 2 are needed", result.window);
  if (result.window > context) {
    bad_input("a window of {} tokens is longer than the model's context of {}", result.window, context);
  }
  const int64_t length = result.window - past;
  result.stride = options.stride != 0 ? options.stride : length;
  if (result.stride < 1 || result.stride > length) {
    bad_input("a stride of {} tokens does not fit a window that holds {} of the text", result.stride, length);
  }
}

struct Mean {
  double value = 0;
  double standard_error = 0;
};

/// The mean of one field of the scores.
Mean mean_of(const std::vector<TokenScore>& scores, double TokenScore::*field) {
  const auto count = static_cast<double>(scores.size());
  Mean mean;
  for (const TokenScore& score : scores) mean.value += score.*field;
  mean.value /= count;
  double squares = 0;
  for (const TokenScore& score : scores) squares += std::pow(score.*field - mean.value, 2);
  if (scores.size() > 1) mean.standard_error = std::sqrt(squares / (count - 1) / count);
  return mean;
}

void summarize(const std::vector<TokenScore>& scores, PerplexityResult& result) {
  const Mean nll = mean_of(scores, &TokenScore::nll);
  const Mean excess = mean_of(scores, &TokenScore::excess_nll);
  result.tokens = static_cast<int64_t>(scores.size());
  result.mean_nll = nll.value;
  result.standard_error = nll.standard_error;
  result.perplexity = std::exp(result.mean_nll);
  result.bits_per_byte = result.mean_nll / std::numbers::ln2 * static_cast<double>(result.text_tokens) /
                         static_cast<double>(result.text_bytes);
  result.excess_nll = excess.value;
  result.excess_standard_error = excess.standard_error;
  const auto same =
      std::count_if(scores.begin(), scores.end(), [](const TokenScore& score) { return score.same_best; });
  result.agreement = static_cast<double>(same) / static_cast<double>(scores.size());
  result.overlap = mean_of(scores, &TokenScore::overlap).value;
  const Mean divergence = mean_of(scores, &TokenScore::divergence);
  result.divergence = divergence.value;
  result.divergence_standard_error = divergence.standard_error;
}

}  // namespace

std::vector<ScoringWindow> scoring_windows(int64_t tokens, int64_t length, int64_t stride, bool past) {
  std::vector<ScoringWindow> windows;
  int64_t scored = 0;  // all tokens below have had their window
  for (int64_t begin = 0; scored < tokens; begin += stride) {
    const int64_t end = std::min(tokens, begin + length);
    const int64_t first = std::max(scored, past ? begin : begin + 1);
    if (first < end) windows.push_back({begin, first, end});
    scored = end;
  }
  return windows;
}

TokenScore score_prediction(std::span<const float> logits, int32_t token, std::span<const float> other) {
  const Softmax softmax(logits);
  TokenScore score{.nll = softmax.nll(static_cast<size_t>(token))};
  if (other.empty()) return score;
  const Softmax second(other);
  score.excess_nll = score.nll - second.nll(static_cast<size_t>(token));
  score.same_best = softmax.best == second.best;
  score.overlap = 0;
  for (size_t t = 0; t < logits.size(); ++t) {
    const double probability = second.probability(t);
    score.overlap += std::min(softmax.probability(t), probability);
    // A token that never comes adds nothing, however much its logits differ; what is no number remains so.
    if (probability != 0) score.divergence += probability * (softmax.nll(t) - second.nll(t));
  }
  return score;
}

std::vector<TokenScore> score_tokens(const Decoder& decoder, std::span<const int32_t> tokens,
                                     const std::vector<int32_t>& beginning, int64_t length, int64_t stride,
                                     const Scoring& scoring, const std::optional<Scoring>& other,
                                     ThreadTeam& team, const std::function<void(double)>& progress) {
  const auto past = static_cast<int64_t>(beginning.size());
  const std::vector<ScoringWindow> windows =
      scoring_windows(static_cast<int64_t>(tokens.size()), length, stride, !beginning.empty());
  const int64_t capacity = std::min(length, static_cast<int64_t>(tokens.size())) + past;
  Scorer scorer(decoder, scoring, capacity, team);
  std::optional<Scorer> second;
  if (other) second.emplace(other->decoder != nullptr ? *other->decoder : decoder, *other, capacity, team);
  int64_t rows = 0;
  for (const ScoringWindow& w : windows) rows += w.end - w.begin + past - 1;
  int64_t done = 0;
  const auto advance = [&](int64_t more) {
    done += more;
    if (progress) progress(static_cast<double>(done) / static_cast<double>(rows));
  };
  std::vector<TokenScore> scores;
  for (const ScoringWindow& w : windows) {
    std::vector<int32_t> window = beginning;
    window.insert(window.end(), tokens.begin() + w.begin, tokens.begin() + w.end);
    score_window(window, w.first_scored - w.begin + past, scorer, second ? &*second : nullptr, team, advance,
                 scores);
  }
  return scores;
}

namespace {

/// What the predictions are compared with, if they are compared.
std::optional<Scoring> compared(const Model& model, const PerplexityOptions& options) {
  if (options.compare_with.empty()) {
    if (options.compare_model != nullptr) {
      fail(ErrorKind::kUsage, "a model to compare with was given, but not in which reading");
    }
    return std::nullopt;
  }
  Scoring other = parse_reading(options.compare_with, "the reading to compare with");
  const Model& compared_model = options.compare_model != nullptr ? *options.compare_model : model;
  other.decoder = &data_of(compared_model).decoder;
  other.decoder->weights().head.resolve(other.reading);
  if (compared_model.vocab_size() != model.vocab_size()) {
    bad_input("models of {} and {} tokens cannot be compared: they need the same vocabulary",
              model.vocab_size(), compared_model.vocab_size());
  }
  if (&compared_model != &model && !same_vocabulary(data_of(model).text(), data_of(compared_model).text())) {
    bad_input(
        "the models cannot be compared: their tokens differ, and the predictions of tokens of one text are "
        "what is compared");
  }
  return other;
}

}  // namespace

PerplexityResult measure_perplexity(const Model& model, std::string_view text,
                                    const PerplexityOptions& options) {
  if (text.empty()) bad_input("the text is empty: there is nothing to measure");
  require_utf8(text, "the text");
  const ModelData& data = data_of(model);
  const Reading reading = parse_reading(options.reading, "the reading to measure");
  const std::optional<Scoring> other = compared(model, options);
  PerplexityResult result;
  result.reading = options.reading;
  result.resolved = reading_name(data.decoder.weights().head.resolve(reading));
  result.bits_per_weight = bits_per_weight(data.decoder.weights(), reading);
  std::vector<int32_t> tokens = data.text().encode(text, {.add_bos = true, .parse_special = false});
  const std::vector<int32_t> beginning = data.text().encode("", {.add_bos = true, .parse_special = false});
  tokens.erase(tokens.begin(), tokens.begin() + std::ssize(beginning));
  result.text_bytes = static_cast<int64_t>(text.size());
  result.text_tokens = static_cast<int64_t>(tokens.size());
  const auto past = static_cast<int64_t>(beginning.size());
  const int64_t context =
      std::min<int64_t>(model.context(), other ? other->decoder->config().context : model.context());
  check_sizes(result, options, context, past);
  if (options.max_tokens > 0 && options.max_tokens < result.text_tokens) {
    tokens.resize(static_cast<size_t>(options.max_tokens));
  }
  if (tokens.size() < 2) {
    bad_input("the text is too short: it has {} token{}, and at least 2 are needed", tokens.size(),
              tokens.size() == 1 ? "" : "s");
  }
  Scoring scoring(reading);
  scoring.cache = options.cache;
  if (options.draft_cache) scoring.cache_part = CachePart::kDraft;
  ThreadTeam team(options.threads > 0 ? options.threads : hardware_threads());
  const int64_t length = result.window - past;
  std::vector<TokenScore> scores;
  {
    const Stopwatch watch(result.seconds);
    scores = score_tokens(data.decoder, tokens, beginning, length, result.stride, scoring, other, team,
                          options.progress);
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i].nll)) {
      bad_input("the model gives scored token {} no finite log probability: are its weights in order?", i);
    }
    if (!std::isfinite(scores[i].excess_nll) || !std::isfinite(scores[i].divergence)) {
      bad_input("the predictions of scored token {} by {} and {} cannot be compared: they are not finite", i,
                options.reading, options.compare_with);
    }
  }
  result.windows = static_cast<int64_t>(
      scoring_windows(static_cast<int64_t>(tokens.size()), length, result.stride, !beginning.empty()).size());
  summarize(scores, result);
  return result;
}

std::vector<double> negative_log_likelihoods(const Model& model, std::span<const int32_t> tokens,
                                             int32_t threads) {
  const auto length = std::ssize(tokens);
  if (length < 2) return {};
  if (length > model.context()) {
    bad_input("{} tokens are more than the model's context of {}", length, model.context());
  }
  for (const int32_t token : tokens) {
    if (token >= 0 && token < model.vocab_size()) continue;
    bad_input("token {} is outside the vocabulary of {} tokens", token, model.vocab_size());
  }
  ThreadTeam team(threads > 0 ? threads : hardware_threads());
  const std::vector<TokenScore> scores =
      score_tokens(data_of(model).decoder, tokens, {}, length, length, Reading::kFull, std::nullopt, team);
  std::vector<double> result;
  for (const TokenScore& score : scores) result.push_back(score.nll);
  return result;
}

}  // namespace verbatim
