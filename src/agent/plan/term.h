#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "agent/json.h"

namespace verbatim::agent {

/// An argument of a planned call: JSON in which results of earlier tasks may stand, as `$1`. A reference is a
/// node of its own, so nothing that a tool answers is ever read as one.
struct Term {
  enum class Kind : uint8_t {
    kValue,      ///< `value`, without references
    kReference,  ///< the result of task `id`, with its JSON type
    kText,       ///< a string of `parts`, each a string or a reference
    kList,       ///< `parts`
    kObject,     ///< `parts` with `keys`
  };
  Kind kind = Kind::kValue;
  Json value = nullptr;
  int64_t id = 0;
  std::vector<Term> parts = {};
  std::vector<std::string> keys = {};

  static Term of(Json value) { return {.kind = Kind::kValue, .value = std::move(value)}; }
  static Term reference(int64_t id) { return {.kind = Kind::kReference, .id = id}; }
};

/// Adds the tasks that a term refers to.
void add_references(const Term& term, std::set<int64_t>& ids);

/// The JSON of a term: each reference gives way, once, to the result that `result_of` has for it. A reference
/// that is the whole of an argument, or of an element or member, keeps the result's type; within a string it
/// becomes the result's text.
Json substitute(const Term& term, const std::function<const Json&(int64_t)>& result_of);

/// The term as a plan writes it.
std::string written(const Term& term);

}  // namespace verbatim::agent
