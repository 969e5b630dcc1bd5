#include "verbatim/model.h"

#include "base/error.h"
#include "base/processors.h"
#include "container/load.h"
#include "engine/model_data.h"
#include "formats/round_to_nearest.h"
#include "formats/squeeze_variant.h"
#include "model/outlier_magnitudes.h"
#include "model/sensitivity_origin.h"
#include "speculation/stores.h"
#include "verbatim/verbatim.h"

namespace verbatim {

namespace {

void require_token(int32_t token, int32_t vocab_size) {
  if (token >= 0 && token < vocab_size) return;
  fail(ErrorKind::kUsage, "token {} lies outside the vocabulary of {} tokens", token, vocab_size);
}

/// The formats to load, by name: the ones that were asked for, or what the recipes need of this source.
std::vector<std::string> formats_to_load(const ModelOptions& options, const WeightSource& source,
                                         ThreadTeam& team) {
  std::vector<Recipe> recipes = options.recipes;
  if (!options.recipe.empty()) recipes.insert(recipes.begin(), load_recipe(options.recipe));
  for (const Recipe& recipe : recipes) validate(recipe);
  const ModelRole role = options.drafts ? ModelRole::kDraft : ModelRole::kTarget;
  // Also where formats were asked for the recipes must be ones that this model can run.
  if (!options.formats.empty()) formats_for(recipes, source, role);
  return options.formats.empty() ? formats_for_machine(recipes, source, role, team) : options.formats;
}

/// Gives weights the values of a format like `squeeze3` (QualityExperiments::squeeze_to_bits).
MatrixTransform squeezing(const QualityExperiments& experiments, const SparseFractions& sparse) {
  if (experiments.squeeze_to_bits < 2 || experiments.squeeze_to_bits > 4 || experiments.squeeze_group < 0) {
    fail(ErrorKind::kUsage, "tables for {} bits of groups of {} inputs were asked for; 2 to 4 bits exist",
         experiments.squeeze_to_bits, experiments.squeeze_group);
  }
  if (experiments.round_to_bits != 0 || experiments.outliers_across_model) {
    fail(ErrorKind::kUsage,
         "tables for a number of bits go with neither rounding nor outliers of a whole model");
  }
  const SqueezeVariant variant{.bits = experiments.squeeze_to_bits,
                               .group = experiments.squeeze_group,
                               .uniform = experiments.squeeze_uniformly,
                               .sparse = sparse};
  return [variant](int64_t columns, int64_t k, const MatrixRows& weights, const MatrixRows& sensitivities,
                   ThreadTeam& team) {
    return squeezed_rows(columns, k, weights, sensitivities, variant, team);
  };
}

DecoderWeights pack(const Checkpoint& checkpoint, const ModelOptions& options, ThreadTeam& team,
                    std::vector<std::string>& not_finite) {
  LoadOptions load;
  set_formats(load, formats_to_load(options, weight_source(checkpoint), team));
  load.progress = options.progress;
  load.sparse = {.sensitive = options.experiments.sparse_sensitive,
                 .outliers = options.experiments.sparse_outliers};
  if (options.experiments.dense_only) load.sparse = {.sensitive = 0.0, .outliers = 0.0};
  if (options.experiments.round_to_bits != 0) {
    if (options.experiments.round_to_bits < 1 || options.experiments.round_to_bits > 16) {
      fail(ErrorKind::kUsage, "rounding to {} bits was asked for; 1 to 16 exist",
           options.experiments.round_to_bits);
    }
    load.transform = [bits = options.experiments.round_to_bits](int64_t, int64_t, const MatrixRows& weights,
                                                                const MatrixRows&, ThreadTeam&) {
      return [weights, bits](int64_t column, std::span<float> row) {
        weights(column, row);
        round_to_nearest(row, bits, row);
      };
    };
  }
  if (options.experiments.squeeze_to_bits != 0) load.transform = squeezing(options.experiments, load.sparse);
  std::optional<SensitivityFile> sensitivities;
  if (!options.sensitivities.empty()) {
    sensitivities = open_sensitivities(options.sensitivities);
    require_same_model(checkpoint, *sensitivities);
    load.sensitivities = &*sensitivities;
  }
  if (options.experiments.outliers_across_model) {
    load.outlier_magnitudes = outlier_magnitudes(checkpoint, load, {}, team);
  }
  return pack_weights(checkpoint, load, team, not_finite);
}

std::shared_ptr<const ModelData> assemble(Checkpoint checkpoint, DecoderWeights weights,
                                          std::shared_ptr<const Tokenizer> tokenizer,
                                          std::vector<std::string> warnings) {
  for (std::string& warning : warnings) warning = checkpoint.path.string() + ": " + warning;
  Decoder decoder(checkpoint.config, std::move(weights));
  std::shared_ptr<StructureCache> structures;
  if (tokenizer != nullptr) {
    structures = std::make_shared<StructureCache>(tokenizer, checkpoint.config.vocab_size);
  }
  ChatTemplateSource conversation = read_chat_template(checkpoint.tokenizer);
  return std::make_shared<ModelData>(ModelData{.checkpoint = std::move(checkpoint),
                                               .decoder = std::move(decoder),
                                               .tokenizer = std::move(tokenizer),
                                               .conversation = std::move(conversation),
                                               .warnings = std::move(warnings),
                                               .structures = std::move(structures)});
}

std::shared_ptr<const ModelData> map_packed(const std::filesystem::path& path, const ModelOptions& options) {
  ThreadTeam team(1);
  if (!options.sensitivities.empty()) {
    bad_input("{} is packed already: sensitivities count when a model is packed", path.string());
  }
  const Container container = open_container(path);
  LoadOptions load;
  set_formats(load, formats_to_load(options, weight_source(container), team));
  if (load.draft) load.formats.clear();  // whatever the file has to draft with
  Checkpoint checkpoint = checkpoint_of(container);
  std::shared_ptr<const Tokenizer> tokenizer = tokenizer_of(checkpoint);
  DecoderWeights weights = load_weights(container, load.formats);
  return assemble(std::move(checkpoint), std::move(weights), std::move(tokenizer), container.header.warnings);
}

}  // namespace

std::shared_ptr<const Tokenizer> tokenizer_of(const Checkpoint& checkpoint) {
  if (checkpoint.tokenizer.kind == TokenizerSource::Kind::kNone) return nullptr;
  std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(checkpoint.tokenizer);
  const int32_t tokens = tokenizer->vocab_size();
  const int32_t rows = checkpoint.config.vocab_size;
  if (tokens > rows) {
    bad_input("{}: the tokenizer has {} tokens but the model only {}: they do not belong together",
              checkpoint.path.string(), tokens, rows);
  }
  return tokenizer;
}

void refuse_without_vocabulary(const Checkpoint& checkpoint) {
  bad_input("{} has no tokenizer.model, tokenizer.json or vocab.json: add one", checkpoint.path.string());
}

const Tokenizer& ModelData::text() const {
  if (tokenizer == nullptr) refuse_without_vocabulary(checkpoint);
  return *tokenizer;
}

Model Model::load(const std::filesystem::path& path, const ModelOptions& options) {
  if (is_packed(path)) return Model(map_packed(path, options));
  ThreadTeam team(options.threads > 0 ? options.threads : hardware_threads());
  Checkpoint checkpoint = open_checkpoint(path);
  std::vector<std::string> not_finite;
  std::shared_ptr<const Tokenizer> tokenizer = tokenizer_of(checkpoint);
  DecoderWeights weights = pack(checkpoint, options, team, not_finite);
  return Model(assemble(std::move(checkpoint), std::move(weights), std::move(tokenizer),
                        not_finite_warning(not_finite)));
}

bool Model::has_vocabulary() const {
  return data_->tokenizer != nullptr;
}

std::vector<int32_t> Model::encode(std::string_view text, bool add_bos) const {
  return data_->text().encode(text, {.add_bos = add_bos, .parse_special = true});
}

std::string Model::decode(const std::vector<int32_t>& tokens) const {
  return data_->text().decode(tokens);
}

std::string Model::token_text(int32_t token) const {
  const Tokenizer& tokenizer = data_->text();
  require_token(token, vocab_size());
  return token < tokenizer.vocab_size() ? tokenizer.piece_bytes(token, false) : std::string();
}

std::string Model::piece(int32_t token) const {
  const Tokenizer& tokenizer = data_->text();
  require_token(token, vocab_size());
  return token < tokenizer.vocab_size() ? std::string(tokenizer.vocabulary_text(token)) : std::string();
}

std::optional<int32_t> Model::find_token(std::string_view piece) const {
  return data_->text().find(piece);
}

std::optional<int32_t> Model::bos_token() const {
  const std::optional<int32_t>& configured = data_->checkpoint.config.bos_token;
  return data_->tokenizer != nullptr && data_->tokenizer->bos() ? data_->tokenizer->bos() : configured;
}

const std::vector<int32_t>& Model::eos_tokens() const {
  return data_->checkpoint.config.eos_tokens;
}

int32_t Model::context() const {
  return data_->checkpoint.config.context;
}

int32_t Model::vocab_size() const {
  return data_->checkpoint.config.vocab_size;
}

std::string_view Model::origin() const {
  return origin_name(data_->checkpoint.config.origin);
}

const std::vector<std::string>& Model::warnings() const {
  return data_->warnings;
}

const char* version() {
  return VERBATIM_VERSION;
}

}  // namespace verbatim
