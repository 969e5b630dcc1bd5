#include "support/engine_support.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "kv/make_cache.h"
#include "support/test_data.h"

namespace verbatim::test {

namespace {

std::string cut(std::string text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  size_t end = most_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text;
}

/// The text behind its first space, or all of it and a full stop where there is none.
std::string after_first_word(const std::string& text) {
  const size_t space = text.find(' ');
  return space == std::string::npos || space + 1 == text.size() ? text + "." : text.substr(space + 1);
}

}  // namespace

Decoder load_decoder(const std::filesystem::path& path) {
  ThreadTeam team(2);
  std::vector<std::string> warnings;
  const Checkpoint checkpoint = open_checkpoint(path);
  LoadOptions options;
  options.formats = {std::nullopt, Format::kMxfp4};
  DecoderWeights weights = pack_weights(checkpoint, options, team, warnings);
  return {checkpoint.config, std::move(weights)};
}

Model load_model(const std::filesystem::path& path, std::vector<std::string> formats) {
  ModelOptions options;
  options.formats = std::move(formats);
  options.threads = 2;
  return Model::load(path, options);
}

std::vector<float> all_logits(const Decoder& decoder, const std::vector<int32_t>& tokens, int64_t chunk,
                              Reading reading, ThreadTeam& team, const CacheOptions& kind) {
  const std::unique_ptr<KvCache> cache =
      make_cache(kind, decoder.cache_shape(), static_cast<int64_t>(tokens.size()));
  KvCache* const caches[] = {cache.get()};
  DecoderWorkspace workspace;
  std::vector<float> all;
  for (size_t first = 0; first < tokens.size(); first += static_cast<size_t>(chunk)) {
    std::vector<Row> rows;
    for (size_t p = first; p < std::min(tokens.size(), first + static_cast<size_t>(chunk)); ++p) {
      rows.push_back({0, static_cast<int32_t>(p), tokens[p]});
    }
    const Matrix<const float> logits = decoder.forward(rows, reading, caches, 0, workspace, team);
    for (int64_t r = 0; r < logits.rows; ++r) {
      all.insert(all.end(), logits.row(r), logits.row(r) + logits.columns);
    }
  }
  return all;
}

std::vector<std::string> real_prompts(size_t count, size_t most_bytes) {
  std::vector<std::string> prompts;
  std::istringstream lines(read_file(own_data() / "prompts.jsonl"));
  for (std::string line; prompts.size() < count && std::getline(lines, line);) {
    prompts.push_back(cut(nlohmann::json::parse(line)["prompt"], most_bytes));
  }
  // Where a test wants more prompts than there are, they come again, each without its beginning.
  for (size_t i = 0; !prompts.empty() && prompts.size() < count; ++i) {
    prompts.push_back(after_first_word(prompts[i]));
  }
  return prompts;
}

}  // namespace verbatim::test
