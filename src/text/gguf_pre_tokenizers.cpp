#include "text/gguf_pre_tokenizers.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "text/byte_level.h"

namespace verbatim {

namespace {

// A file names the model that its pattern was first seen in, or one that shares it.
struct Family {
  std::vector<const char*> names;
  std::vector<const char*> patterns;  // each cuts what the one before left
  bool ignore_merges = false;
};

constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char* kGpt4oPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {{"gpt-2", "phi-2", "olmo", "mpt", "jais"}, {kGpt2Pattern}},
      {{"llama-bpe", "llama3", "llama-v3"}, {kLlama3Pattern}, true},
      {{"glm4", "chatglm-bpe"}, {kLlama3Pattern}},
      {{"qwen2", "stablelm2", "deepseek-r1-qwen"}, {kQwen2Pattern}},
      {{"tekken"}, {kTekkenPattern}, true},
      {{"gpt-4o", "llama4"}, {kGpt4oPattern}},
      {{"starcoder", "refact", "smollm", "codeshell", "command-r"}, {R"(\p{N})", kGpt2Pattern}},
      {{"deepseek-coder"},
       {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
        R"([\x{4e00}-\x{9fa5}\x{0800}-\x{4e00}\x{ac00}-\x{d7ff}]+)", R"(\p{N})"}},
      {{"default"}, {R"([\p{P}$+<=>^~|]+)", kGpt2Pattern, R"(\p{N}+)", R"([0-9][0-9][0-9])"}},
  };
  return all;
}

const Family& family_of(const std::string& name, const std::string& where) {
  std::string known;
  for (const Family& family : families()) {
    for (const char* candidate : family.names) {
      if (name == candidate) return family;
      known += (known.empty() ? "" : ", ") + std::string(candidate);
    }
  }
  bad_input("{}: tokenizer.ggml.pre is '{}', which is not supported (supported: {})", where, printable(name),
            known);
}

}  // namespace

GgufPreTokenizer gguf_pre_tokenizer(const std::string& name, const std::string& where) {
  const Family& family = family_of(name, where);
  GgufPreTokenizer result{{}, family.ignore_merges};
  for (const char* pattern : family.patterns) {
    result.steps.push_back(split_step(pattern, SplitBehavior::kIsolated, where));
  }
  return result;
}

std::vector<std::string> gguf_pre_tokenizer_patterns(const std::string& name, const std::string& where) {
  const Family& family = family_of(name, where);
  return {family.patterns.begin(), family.patterns.end()};
}

std::optional<std::string> gguf_pre_tokenizer_name(std::span<const std::string> patterns,
                                                   bool ignore_merges) {
  for (const Family& family : families()) {
    const bool same = std::ranges::equal(patterns, family.patterns,
                                         [](const std::string& a, const char* b) { return a == b; });
    if (same && ignore_merges == family.ignore_merges) return family.names.front();
  }
  return std::nullopt;
}

}  // namespace verbatim
