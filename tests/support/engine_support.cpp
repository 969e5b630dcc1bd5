#include "support/engine_support.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "kv/dense.h"
#include "support/test_data.h"

namespace verbatim::test {

namespace {

std::string prompt_of(const nlohmann::json& line) {
  if (line.contains("prompt")) return line["prompt"];
  if (line.contains("question")) return line["question"];
  return line["turns"][0];
}

std::string cut(std::string text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  size_t end = most_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text;
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
                              Reading reading, ThreadTeam& team) {
  DenseCache cache(decoder.cache_shape(), static_cast<int64_t>(tokens.size()));
  KvCache* const caches[] = {&cache};
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
  std::vector<std::vector<std::string>> files;
  for (const char* name :
       {"python_heldout.jsonl", "gsm8k_test.jsonl", "humaneval_80.jsonl", "mt_bench.jsonl", "qa.jsonl"}) {
    std::istringstream lines(read_file(shared_data() / "prompts" / name));
    std::vector<std::string> prompts;
    for (std::string line; prompts.size() < count && std::getline(lines, line);) {
      prompts.push_back(cut(prompt_of(nlohmann::json::parse(line)), most_bytes));
    }
    files.push_back(std::move(prompts));
  }
  std::vector<std::string> taken;
  for (size_t i = 0; taken.size() < count; ++i) {
    const std::vector<std::string>& file = files[i % files.size()];
    if (i / files.size() < file.size()) taken.push_back(file[i / files.size()]);
  }
  return taken;
}

}  // namespace verbatim::test
