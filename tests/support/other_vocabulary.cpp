#include "support/other_vocabulary.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "base/utf8.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "text/protobuf_reader.h"
#include "text/sentencepiece_model.h"

namespace verbatim::test {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr size_t kFixed = 3;

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string delimited(uint32_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

std::string renumbered_tokenizer(const std::string& bytes, const std::vector<int32_t>& ids) {
  std::vector<std::string_view> pieces;
  std::string rest;
  const std::string where = "tokenizer.model";
  ProtobufReader reader(bytes, where);
  for (ProtobufField field; reader.next(field);) {
    if (field.wire_type != 2) throw std::runtime_error("a field of tokenizer.model is no message");
    if (field.number == 1) {
      pieces.push_back(field.bytes);
    } else {
      rest += delimited(field.number, field.bytes);
    }
  }
  std::string result;
  for (const int32_t id : ids) result += delimited(1, pieces.at(static_cast<size_t>(id)));
  return result + rest;
}

constexpr int32_t kUnknownId = 0;
/// In place of an id: a token that the original model does not have.
constexpr int32_t kNoId = -1;

/// The rows of a matrix for these ids, with another row for those that the matrix does not have.
std::string rows_of(std::string_view matrix, size_t row, const std::vector<int32_t>& ids,
                    const std::string& missing) {
  std::string rows;
  for (const int32_t id : ids)
    rows += id == kNoId ? missing : matrix.substr(static_cast<size_t>(id) * row, row);
  return rows;
}

std::string renumbered_tensors(const std::string& file, const std::vector<int32_t>& ids) {
  uint64_t header_size;
  std::memcpy(&header_size, file.data(), sizeof(header_size));
  const json header = json::parse(file.substr(sizeof(header_size), header_size));
  const std::string_view data = std::string_view(file).substr(sizeof(header_size) + header_size);
  const bool lacks_some = std::find(ids.begin(), ids.end(), kNoId) != ids.end();
  json new_header;
  std::string new_data;
  const auto add_rows = [&](const std::string& name, const json& entry, const std::string& rows) {
    new_header[name] = entry;
    new_header[name]["shape"][0] = ids.size();
    new_header[name]["data_offsets"] = {new_data.size(), new_data.size() + rows.size()};
    new_data += rows;
  };
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      new_header[name] = entry;
      continue;
    }
    const size_t begin = entry["data_offsets"][0];
    const std::string_view bytes = data.substr(begin, entry["data_offsets"][1].get<size_t>() - begin);
    if (name == "model.embed_tokens.weight" || name == "lm_head.weight") {
      const size_t row = bytes.size() / entry["shape"][0].get<size_t>();
      // What the model was never trained to say is as unlikely as its token for the unknown.
      const std::string unlikely(bytes.substr(kUnknownId * row, row));
      const std::string said = rows_of(bytes, row, ids, unlikely);
      const bool is_head = name == "lm_head.weight";
      add_rows(name, entry, is_head ? said : rows_of(bytes, row, ids, std::string(row, '\0')));
      if (!is_head && lacks_some && !header.contains("lm_head.weight")) {
        add_rows("lm_head.weight", entry, said);
      }
    } else {
      new_header[name] = entry;
      new_header[name]["data_offsets"] = {new_data.size(), new_data.size() + bytes.size()};
      new_data += bytes;
    }
  }
  return safetensors_file(new_header.dump(), new_data);
}

}  // namespace

void write_with_vocabulary(const fs::path& model, const std::vector<int32_t>& ids, const fs::path& folder) {
  fs::create_directories(folder);
  json config = json::parse(read_file(model / "config.json"));
  config["vocab_size"] = ids.size();
  write_file(folder / "config.json", config.dump());
  write_file(folder / "tokenizer_config.json", read_file(model / "tokenizer_config.json"));
  write_file(folder / "tokenizer.model", renumbered_tokenizer(read_file(model / "tokenizer.model"), ids));
  write_file(folder / "model.safetensors", renumbered_tensors(read_file(model / "model.safetensors"), ids));
}

void write_onto_vocabulary(const fs::path& model, const fs::path& tokenizer, const fs::path& folder) {
  fs::create_directories(folder);
  using Entry = std::pair<SentencePieceModel::Type, std::string>;
  std::map<Entry, int32_t> own;
  const SentencePieceModel old_pieces =
      parse_sentencepiece_model(read_file(model / "tokenizer.model"), "tokenizer.model");
  for (size_t i = 0; i < old_pieces.entries.size(); ++i) {
    own[{old_pieces.entries[i].type, old_pieces.entries[i].text}] = static_cast<int32_t>(i);
  }
  std::vector<int32_t> ids;
  for (const auto& entry :
       parse_sentencepiece_model(read_file(tokenizer / "tokenizer.model"), "tokenizer.model").entries) {
    const auto found = own.find({entry.type, entry.text});
    ids.push_back(found == own.end() ? kNoId : found->second);
  }
  json config = json::parse(read_file(model / "config.json"));
  config["vocab_size"] = ids.size();
  config["tie_word_embeddings"] = false;
  write_file(folder / "config.json", config.dump());
  write_file(folder / "model.safetensors", renumbered_tensors(read_file(model / "model.safetensors"), ids));
  copy_tokenizer(tokenizer, folder);
}

std::vector<int32_t> shuffled_vocabulary(const fs::path& model, size_t most, uint32_t seed) {
  const SentencePieceModel vocabulary =
      parse_sentencepiece_model(read_file(model / "tokenizer.model"), "tokenizer.model");
  std::vector<int32_t> ids;
  for (size_t i = 0, longer = 0; i < vocabulary.entries.size(); ++i) {
    const auto& entry = vocabulary.entries[i];
    const bool is_longer =
        entry.type == SentencePieceModel::Type::kNormal && utf8_length(entry.text[0]) < entry.text.size();
    if (!is_longer || longer++ < most) ids.push_back(static_cast<int32_t>(i));
  }
  std::shuffle(ids.begin() + kFixed, ids.end(), std::mt19937(seed));
  return ids;
}

std::shared_ptr<const Tokenizer> reduced_tokenizer() {
  static const std::shared_ptr<const Tokenizer> tokenizer = [] {
    const TemporaryFolder folder;
    const fs::path model = draft_model();
    write_with_vocabulary(model, shuffled_vocabulary(model, 1000, 3), folder.path());
    return load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, folder.path() / "tokenizer.model"});
  }();
  return tokenizer;
}

std::shared_ptr<const Tokenizer> llama2_tokenizer() {
  return load_tokenizer({TokenizerSource::Kind::kSentencePieceModel,
                         public_data() / "tokenizers" / "llama-2" / "tokenizer.model"});
}

void copy_tokenizer(const fs::path& from, const fs::path& to) {
  for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
    write_file(to / name, read_file(from / name));
  }
}

}  // namespace verbatim::test
