#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verbatim/cache.h"

namespace verbatim {

/// A source of drafts for the level above it, and its stop rule (ML-SpecQD §III-C). A level that has a
/// drafter itself verifies its drafts in one pass, as the model does.
struct DraftLevel {
  enum class Kind {
    kSelf,   ///< another reading of the same model, sharing its cache (QSpec §3.1, ML-SpecQD §III-B)
    kModel,  ///< another model with a cache of its own
    kNgram,  ///< tokens that followed the same tokens before, in the sequence or in a table
  };

  Kind kind = Kind::kSelf;
  /// How the weights are read, e.g. "mxfp4-w4a8". A `model` without one reads "full".
  std::string reading;
  /// `model`: where the model lies; empty: Session::set_draft_model() gives it.
  std::string model;
  /// `self`: the number of layers to run, the first ones (early exit); 0 runs them all.
  int32_t layers = 0;
  /// `self`: the number of experts that a token goes through in each mixture of experts, those that its
  /// router likes best; 0 takes as many as the model does.
  int32_t experts = 0;
  /// Drafts only among this many tokens of the vocabulary, the most frequent ones in texts, which makes the
  /// output matrix smaller; 0 takes all.
  int32_t vocabulary = 0;
  /// `self`: the part of the cache that is read: "full"; "draft", the upper halves of the codes (QuantSpec
  /// §4.2); "window", the beginning and the latest positions (StreamingLLM); "snapkv", the positions that the
  /// end of the prompt attends to most, and the positions after the prompt.
  std::string cache = "full";
  /// Caches "window" and "snapkv": the share of the context that is read, 0.01 to 1.
  float budget = 0.25f;
  /// `ngram`: the longest run of tokens that is looked up, 1 to 32.
  int32_t longest_match = 6;
  /// `ngram`: the shortest run of tokens that is looked up, from 1 to the longest.
  int32_t shortest_match = 1;
  /// `ngram`: a file of counts to start from (`verbatim ngrams`); empty: none.
  std::string table;

  /// The stop rule's depth: the most tokens that are drafted one after the other, 1 to 64.
  int32_t length = 8;
  /// The stop rule's threshold: nothing is drafted after a token less probable than this under the draft; 0
  /// never stops early.
  float threshold = 0.0f;
  /// The most candidates for a position, 1 to 8; above 1 the draft is a tree.
  int32_t breadth = 1;
  /// The most drafted tokens in all, up to 64; 0: as many as `length`.
  int32_t nodes = 0;

  bool operator==(const DraftLevel&) const = default;

  /// A short name: "ngram", or the kind and the reading, as in "self@mxfp4-w4a8" and "model@full", with
  /// "/4" behind it where only the first four layers run, and "+1" where tokens go through one expert.
  std::string short_name() const;
};

/// A named way to decode: what drafts, what is accepted, and when drafting stops. Written as TOML in
/// recipes/.
struct Recipe {
  enum class Acceptance {
    kExact,      ///< the token that plain decoding would have produced: the same bytes
    kRejection,  ///< Leviathan's rule: the same distribution, not the same bytes
    kBild,       ///< whatever the model finds likely enough: lossy (docs/recipes/bild.md)
  };

  std::string name;     ///< what people and error messages call the recipe
  std::string summary;  ///< one line for people
  std::string source;   ///< the paper and section it comes from
  /// levels[0] drafts for the model, levels[1] for levels[0], and so on; none is plain decoding.
  std::vector<DraftLevel> levels;
  Acceptance acceptance = Acceptance::kExact;
  /// The reading that verifies: "full", the model's own weights, or another reading of them ("int4-w4a16").
  /// Plain decoding then means decoding in this reading.
  std::string reading = "full";
  /// The scheme that the model must have been quantized with ("atom", "quarot"); empty: any or none.
  std::string scheme;
  /// How the model's keys and values are stored.
  CacheOptions cache;
  /// `bild`: the largest -log probability under the model of a token that stays (α_RB).
  float rollback = 0.0f;
  /// The planner chooses which of the levels draft, how deep and how broad, step by step; the levels' own
  /// stop rules are the most that it may choose.
  bool planned = false;

  bool operator==(const Recipe&) const = default;

  /// Whether nothing drafts.
  bool plain() const { return levels.empty(); }
  /// Whether the text is byte for byte that of plain decoding.
  bool lossless() const { return acceptance == Acceptance::kExact; }
  /// What the recipe guarantees of the text: "bytes" or "distribution" of plain decoding, or "none".
  std::string_view guarantee() const;
  /// Whether a level drafts with another model that Session::set_draft_model() must give.
  bool needs_draft_model() const;
  /// The formats that this recipe reads of a model in BF16: the formats that its drafts are read from, and
  /// "full" beside them unless one of them is lossless itself. Model::load() with ModelOptions::recipe knows
  /// which formats a model of another type needs.
  std::vector<std::string> formats() const;
  /// The formats that this recipe reads of the other model that it drafts with; empty if it has none.
  std::vector<std::string> draft_model_formats() const;
};

/// Throws Error(kBadInput), naming `where` (or, if that is empty, the recipe), unless every setting of a
/// recipe is known, within its range and compatible with the others. load_recipe() and parse_recipe()
/// validate what they read, and Model::load(), Session and Engine what they are given.
void validate(const Recipe& recipe, const std::string& where = {});

/// The names of the built-in recipes, in alphabetical order.
std::vector<std::string> recipe_names();

/// A built-in recipe by name, or the recipe in a file if `name_or_path` ends in ".toml". Throws Error(kUsage)
/// when no built-in recipe has the name, and Error(kBadInput) when the file cannot be read or says something
/// unknown or out of range; the message says where.
Recipe load_recipe(const std::string& name_or_path);

/// A recipe from its TOML text; `where` names it in error messages.
Recipe parse_recipe(std::string_view toml, const std::string& where);

}  // namespace verbatim
