#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/decoder.h"
#include "verbatim/verbatim.h"

namespace verbatim::test {

/// A checkpoint packed with MXFP4 beside its full weights.
Decoder load_decoder(const std::filesystem::path& path);

/// A model loaded by two threads in the given formats; without any, with MXFP4 beside its full weights.
Model load_model(const std::filesystem::path& path, std::vector<std::string> formats = {"full", "mxfp4"});

/// The logits of every token of a sequence, [tokens][vocabulary], evaluated from an empty cache of a kind in
/// passes of at most `chunk` rows.
std::vector<float> all_logits(const Decoder& decoder, const std::vector<int32_t>& tokens, int64_t chunk,
                              Reading reading, ThreadTeam& team, const CacheOptions& cache = {});

/// Real prompts: `count` of them, taken in turn from the prompt files of the test data (Python, GSM8K,
/// HumanEval, MT-bench, question answering), each cut to at most `most_bytes` at a character boundary.
std::vector<std::string> real_prompts(size_t count, size_t most_bytes);

}  // namespace verbatim::test
