#include "verbatim/model.h"

#include "base/error.h"
#include "engine/model_data.h"
#include "verbatim/verbatim.h"

namespace verbatim {

namespace {

/// Whether the vocabulary and the model can belong together.
void check_vocabulary(const ModelData& data) {
  if (data.tokenizer == nullptr) return;
  const int32_t tokens = data.tokenizer->vocab_size();
  const int32_t rows = data.checkpoint.config.vocab_size;
  if (tokens > rows) {
    bad_input("{}: the tokenizer has {} tokens but the model only {}: they do not belong together",
              data.checkpoint.path.string(), tokens, rows);
  }
}

}  // namespace

const Tokenizer& ModelData::text() const {
  if (tokenizer == nullptr) {
    bad_input("{} has no tokenizer.model, tokenizer.json or vocab.json: add one", checkpoint.path.string());
  }
  return *tokenizer;
}

Model Model::load(const std::filesystem::path& path, const ModelOptions& options) {
  ThreadTeam team(options.threads > 0 ? options.threads : hardware_threads());
  Checkpoint checkpoint = open_checkpoint(path);
  std::shared_ptr<const Tokenizer> tokenizer;
  if (checkpoint.tokenizer.kind != TokenizerSource::Kind::kNone)
    tokenizer = load_tokenizer(checkpoint.tokenizer);
  std::vector<std::string> warnings;
  DecoderWeights weights =
      pack_weights(checkpoint, {.mxfp4 = options.mxfp4, .progress = options.progress}, team, warnings);
  Decoder decoder(checkpoint.config, std::move(weights));
  auto data = std::make_shared<ModelData>(ModelData{.checkpoint = std::move(checkpoint),
                                                    .decoder = std::move(decoder),
                                                    .tokenizer = std::move(tokenizer),
                                                    .has_mxfp4 = options.mxfp4,
                                                    .warnings = std::move(warnings)});
  check_vocabulary(*data);
  return Model(std::move(data));
}

std::vector<int32_t> Model::encode(std::string_view text, bool add_bos) const {
  return data_->text().encode(text, {.add_bos = add_bos, .parse_special = true});
}

std::string Model::decode(const std::vector<int32_t>& tokens) const {
  return data_->text().decode(tokens);
}

int32_t Model::context() const {
  return data_->checkpoint.config.context;
}

int32_t Model::vocab_size() const {
  return data_->checkpoint.config.vocab_size;
}

const std::vector<std::string>& Model::warnings() const {
  return data_->warnings;
}

const char* version() {
  return VERBATIM_VERSION;
}

}  // namespace verbatim
