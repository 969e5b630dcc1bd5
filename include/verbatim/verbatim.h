#pragma once

// The whole public interface. docs/api.md shows how its parts go together.

#include "verbatim/cache.h"
#include "verbatim/chat.h"
#include "verbatim/chat_template.h"
#include "verbatim/convert.h"
#include "verbatim/embed.h"
#include "verbatim/engine.h"
#include "verbatim/error.h"
#include "verbatim/formats.h"
#include "verbatim/generate.h"
#include "verbatim/inflate.h"
#include "verbatim/inspect.h"
#include "verbatim/logprobs.h"
#include "verbatim/machine.h"
#include "verbatim/model.h"
#include "verbatim/model_vocabulary.h"
#include "verbatim/ngrams.h"
#include "verbatim/outlook.h"
#include "verbatim/pack.h"
#include "verbatim/perplexity.h"
#include "verbatim/prompts.h"
#include "verbatim/quantize.h"
#include "verbatim/recipe.h"
#include "verbatim/sampling.h"
#include "verbatim/score.h"
#include "verbatim/structure.h"
#include "verbatim/text.h"
#include "verbatim/top_logits.h"
#include "verbatim/weights.h"
#include "verbatim/whole_logits.h"

namespace verbatim {

/// The library's version: "0.1.0".
const char* version();

}  // namespace verbatim
