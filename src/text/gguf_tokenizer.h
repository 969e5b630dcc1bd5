#pragma once

#include <memory>
#include <string>

#include "checkpoint/gguf.h"
#include "text/tokenizer.h"

namespace verbatim {

/// The vocabulary in a GGUF file's metadata: tokenizer.ggml.model "llama" (SentencePiece) or "gpt2"
/// (byte-level BPE). Throws Error(kBadInput), naming `where`, for any other and whatever is malformed.
std::shared_ptr<const Tokenizer> make_gguf_tokenizer(const GgufFile& gguf, const std::string& where);

}  // namespace verbatim
