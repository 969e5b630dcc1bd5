#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>

#include "app/command_line.h"
#include "app/load_model.h"
#include "app/text_io.h"
#include "base/cpu.h"
#include "base/processors.h"
#include "base/stopwatch.h"
#include "bench/commands.h"
#include "bench/passes_measurement.h"
#include "engine/model_access.h"
#include "structure/structure_cursor.h"

namespace verbatim::bench {

namespace {

struct Options {
  int32_t vocabulary = 131072;
  std::string tokenizer;
  std::string schema =
      R"({"type":"object","properties":{"name":{"type":"string"},"bio":{"type":"string","maxLength":200},)"
      R"("age":{"type":"integer","minimum":0,"maximum":120},"score":{"type":"number"},)"
      R"("tags":{"type":"array","items":{"type":"string"}},"kind":{"enum":["person","group"]},)"
      R"("more":{}},"required":["name","bio","age","score","tags","kind","more"]})";
  int32_t replies = 20;
  std::string model;
  int32_t threads = 0;
};

/// A made vocabulary of the kind that models have: every byte, words of several scripts with and without a
/// space before them, numbers, runs of punctuation.
class MadeTokenizer : public Tokenizer {
 public:
  explicit MadeTokenizer(int32_t size) {
    for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
    std::mt19937 random(19);
    const auto below = [&](size_t limit) { return random() % limit; };
    constexpr const char* kLetters[] = {"a", "e", "i", "o", "n", "t", "s", "r",
                                        "l", "d", "h", "c", "m", "u", "p", "g"};
    constexpr const char* kOthers[] = {"é", "ü", "д",  "о",  "и",    "日",       "本",          "的",
                                       "א", "ع", "한", "국", "\xE6", "\xE4\xBD", "\xF0\x9F\x98"};
    constexpr std::string_view kSigns = "\"{}[]():,;.\\/'!?-+*=<>_ \n\t";
    while (std::ssize(texts_) < size) {
      std::string text;
      const size_t kind = below(100);
      if (kind < 70) {
        if (below(2) == 0) text += ' ';
        for (size_t n = 2 + below(9); n > 0; --n) text += kLetters[below(std::size(kLetters))];
        if (below(4) == 0 && !text.empty()) text[text.size() - 1] = 'E';
      } else if (kind < 88) {
        for (size_t n = 1 + below(4); n > 0; --n) text += kOthers[below(std::size(kOthers))];
      } else if (kind < 92) {
        text = std::to_string(below(100000));
      } else {
        for (size_t n = 1 + below(6); n > 0; --n) text += kSigns[below(kSigns.size())];
        if (below(3) == 0) text += kLetters[below(std::size(kLetters))];
      }
      add(std::move(text));
    }
  }

  std::vector<Token> encode(std::string_view text, const EncodeOptions&) const override {
    std::vector<Token> tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::string piece_bytes(Token token, bool) const override { return texts_[static_cast<size_t>(token)]; }
  int32_t vocab_size() const override { return static_cast<int32_t>(texts_.size()); }
  std::optional<Token> bos() const override { return std::nullopt; }
  std::optional<Token> eos() const override { return std::nullopt; }
  bool is_control(Token) const override { return false; }
  std::optional<Token> find(std::string_view) const override { return std::nullopt; }
  std::string_view vocabulary_text(Token token) const override { return texts_[static_cast<size_t>(token)]; }
  std::string kind() const override { return "made"; }

 private:
  void add(std::string text) {
    if (known_.insert(text).second) texts_.push_back(std::move(text));
  }

  std::vector<std::string> texts_;
  std::set<std::string> known_;
};

std::shared_ptr<const Tokenizer> tokenizer_of(const Options& options) {
  if (options.tokenizer.empty()) return std::make_shared<MadeTokenizer>(options.vocabulary);
  const bool json = options.tokenizer.ends_with(".json");
  const bool gguf = options.tokenizer.ends_with(".gguf");
  return load_tokenizer({json   ? TokenizerSource::Kind::kTokenizerJson
                         : gguf ? TokenizerSource::Kind::kGguf
                                : TokenizerSource::Kind::kSentencePieceModel,
                         options.tokenizer});
}

struct Times {
  std::vector<double> seconds;
  std::string shown() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    const auto at = [&](double part) {
      return 1e6 * sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
    };
    return fmt::format("median {:8.1f}  90 % {:8.1f}  most {:9.1f} microseconds, {} times", at(0.5), at(0.9),
                       at(1.0), sorted.size());
  }
};

/// The mean of the middle 98 % of the times: interruptions by other work would hide what the rest costs.
double usual(const Times& times) {
  std::vector<double> sorted = times.seconds;
  std::sort(sorted.begin(), sorted.end());
  const size_t cut = sorted.size() / 100;
  double sum = 0;
  for (size_t i = cut; i + cut < sorted.size(); ++i) sum += sorted[i];
  return sum / static_cast<double>(sorted.size() - 2 * cut);
}

/// Says what share of a pass over one row of the model the masks are, by the seconds that they take for a
/// token.
std::string compared(const Model& model, int threads, double seconds) {
  ThreadTeam team(threads);
  const double pass = pass_seconds(data_of(model).decoder, {{.reading = Reading::kFull, .rows = 1}}, 64, 1.0,
                                   7, team, [](double) {})
                          .front();
  return fmt::format(
      "masks of a reply     {:.1f} microseconds a token, {:.2f} % of a pass over one row ({:.2f} ms)\n",
      1e6 * seconds, 100 * seconds / pass, 1e3 * pass);
}

void run(const Options& given) {
  Options options = given;
  std::optional<Model> model;
  const int threads = options.threads > 0 ? options.threads : hardware_threads();
  if (!options.model.empty()) {
    model = app::load_model(options.model, {}, threads);
    options.vocabulary = data_of(*model).decoder.config().vocab_size;
  }
  double seconds_vocabulary = 0;
  double seconds_compile = 0;
  std::shared_ptr<const StructureVocabulary> vocabulary;
  {
    const std::shared_ptr<const Tokenizer> tokenizer = tokenizer_of(options);
    const Stopwatch watch(seconds_vocabulary);
    vocabulary = std::make_shared<const StructureVocabulary>(tokenizer, tokenizer->vocab_size());
  }
  std::shared_ptr<CompiledStructure> compiled;
  {
    const Stopwatch watch(seconds_compile);
    compiled =
        std::make_shared<CompiledStructure>(*Structure::json_schema(options.schema).node(), vocabulary);
  }
  Times fresh;
  Times cached;
  Times applied;
  Times forced;
  Times needed;
  const auto timed = [](Times& times, const auto& work) {
    double seconds = 0;
    {
      const Stopwatch watch(seconds);
      work();
    }
    times.seconds.push_back(seconds);
  };
  std::mt19937 random(7);
  std::vector<float> logits(static_cast<size_t>(vocabulary->size()));
  for (int32_t reply = 0; reply < options.replies; ++reply) {
    StructureHistory history;
    StructureCursor cursor(compiled, {0});
    std::vector<int32_t> tokens;
    for (int step = 0; step < 200; ++step) {
      std::shared_ptr<const TokenMask> mask;
      const auto look = [&] { mask = compiled->allowed(tokens, {}, history); };
      const int64_t computed = compiled->computed_masks();
      timed(fresh, look);
      needed.seconds.push_back(fresh.seconds.back());
      if (compiled->computed_masks() == computed) fresh.seconds.pop_back();
      timed(cached, look);
      timed(applied, [&] { cursor.apply(tokens, logits); });
      needed.seconds.back() += applied.seconds.back();
      timed(forced, [&] { cursor.forced(tokens, 32); });
      std::vector<int32_t> choices;
      for (int32_t t = 0; t < vocabulary->size(); ++t) {
        if (test_bit(mask->bits, t)) choices.push_back(t);
      }
      if (choices.empty()) break;
      // Within texts, a quotation mark now and then, so that there is more than one string.
      int32_t next = choices[random() % choices.size()];
      const auto quote = static_cast<int32_t>('"');
      if (random() % 8 == 0 && test_bit(mask->bits, quote)) next = quote;
      tokens.push_back(next);
      std::fill(logits.begin(), logits.end(), 0.0f);
    }
  }
  app::write_out(fmt::format("{} tokens; vocabulary made ready in {:.0f} ms, the schema in {:.2f} ms\n",
                             vocabulary->size(), 1e3 * seconds_vocabulary, 1e3 * seconds_compile));
  app::write_out(fmt::format("mask of a new place  {}\n", fresh.shown()));
  app::write_out(fmt::format("mask known before    {}\n", cached.shown()));
  app::write_out(fmt::format("mask on logits       {}\n", applied.shown()));
  app::write_out(fmt::format("forced text          {}\n", forced.shown()));
  if (model) app::write_out(compared(*model, threads, usual(needed)));
}

}  // namespace

void add_masks(app::Command program) {
  auto options = std::make_shared<Options>();
  app::Command command = program.add_command("masks", "What the token masks of a JSON schema cost");
  command.add_option("--vocabulary", options->vocabulary, "Tokens of the made vocabulary")
      .show_default()
      .range(512, 1 << 20);
  command
      .add_option("--tokenizer", options->tokenizer,
                  "A vocabulary instead of the made one: a tokenizer.model, tokenizer.json or .gguf")
      .type_name("FILE");
  command.add_option("--schema", options->schema,
                     "The JSON schema; without it one with most kinds of values");
  command.add_option("--replies", options->replies, "Random replies to measure")
      .show_default()
      .range(1, 10000);
  command.add_option("--model", options->model,
                     "A model whose pass the masks are compared with; the made vocabulary gets its size");
  command.add_option("--threads", options->threads, "Threads of the pass; without it one per processor")
      .range(1, 4096);
  command.footer(
      "Examples:\n"
      "  verbatim-bench masks\n"
      "  verbatim-bench masks --model random-model\n"
      "  verbatim-bench masks --tokenizer models/target/tokenizer.model");
  command.callback([options] { run(*options); });
}

}  // namespace verbatim::bench
