#include "container/pack.h"

#include "container/container_writer.h"
#include "text/tokenizer.h"
#include "text/tokenizer_files.h"

namespace verbatim {

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void add_tokenizer(const TokenizerSource& source, ContainerWriter& writer, ContainerHeader& header) {
  if (source.kind == TokenizerSource::Kind::kNone) return;
  load_tokenizer(source);  // what does not load is not handed on
  header.tokenizer = source.kind;
  for (const auto& [name, contents] : read_tokenizer_files(source).contents) {
    header.tokenizer_files.push_back({name, writer.add(bytes_of(contents))});
  }
}

void add_vectors(const PackParts& parts, ContainerWriter& writer, ContainerHeader& header,
                 std::vector<std::string>& not_finite) {
  for (const VectorSpec& spec : vector_specs(parts.config)) {
    const Buffer<float> values = parts.vector(spec, not_finite);
    const auto padded = static_cast<size_t>(round_up(spec.length(), kInnerStep));
    header.vectors.push_back(
        {spec.name, spec.length(), writer.add(std::as_bytes(values.span().first(padded)))});
  }
}

}  // namespace

std::optional<Container> pack_parts(const Checkpoint& checkpoint, const PackParts& parts,
                                    const std::filesystem::path& target, const PackModelOptions& options) {
  ContainerWriter writer(target, options.alignment);
  ContainerHeader header;
  header.config = parts.config;
  header.config.rope_interleaved = false;  // packing brings the rows into the engine's order
  header.config.norms_less_one = false;    // packing adds the 1 that is missing to the norms
  header.config.fused_qkv = false;         // packing cuts the matrices into the engine's parts
  header.config.fused_gate_up = false;
  header.source = checkpoint.format;
  add_tokenizer(checkpoint.tokenizer, writer, header);
  header.embedding_type = parts.embedding.dtype;
  header.embedding = writer.add(parts.embedding.data);
  std::vector<std::string> not_finite;
  add_vectors(parts, writer, header, not_finite);

  const std::vector<MatrixSpec> specs = matrix_specs(parts.config);
  double total = 0;
  for (const MatrixSpec& spec : specs) total += static_cast<double>(spec.columns() * spec.k);
  double done = 0;
  for (const MatrixSpec& spec : specs) {
    if (options.cancelled && options.cancelled()) return std::nullopt;
    header.matrices.push_back(writer.add(spec.name, parts.matrix(spec, not_finite)));
    for (const auto& file : checkpoint.files) file->release();
    done += static_cast<double>(spec.columns() * spec.k);
    if (options.load.progress) options.load.progress(done / total);
  }
  if (options.cancelled && options.cancelled()) return std::nullopt;
  header.warnings = not_finite_warning(not_finite);
  writer.finish(header);
  return open_container(target);
}

std::optional<Container> pack_model(const Checkpoint& checkpoint, const std::filesystem::path& target,
                                    const PackModelOptions& options, ThreadTeam& team) {
  const PackParts parts{.config = checkpoint.config,
                        .embedding = embedding_of(checkpoint),
                        .matrix =
                            [&](const MatrixSpec& spec, std::vector<std::string>& not_finite) {
                              LinearWeight weight =
                                  pack_matrix(checkpoint, spec, options.load, team, not_finite);
                              if (options.load.sensitivities != nullptr)
                                options.load.sensitivities->file->release();
                              return weight;
                            },
                        .vector =
                            [&](const VectorSpec& spec, std::vector<std::string>& not_finite) {
                              return read_vector(checkpoint, spec, not_finite);
                            }};
  return pack_parts(checkpoint, parts, target, options);
}

}  // namespace verbatim
