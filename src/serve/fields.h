#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/errors.h"
#include "serve/json.h"

namespace verbatim::serve {

/// The types of JSON that a field may have. A null is as good as a field that is not there.
enum class FieldType {
  kBoolean,
  kInteger,  ///< within the field's bounds; 3.0 is good for 3
  kNumber,   ///< within the field's bounds
  kText,
  kTextOrTexts,   ///< a string or a list of strings
  kTextOrList,    ///< a string or a list
  kTextOrObject,  ///< a string or an object
  kBooleanOrInteger,
  kList,
  kObject,
  kAny,
};

/// What a server does with a field.
enum class FieldUse {
  kDone,      ///< does what it says
  kOnly,      ///< takes the values that are listed as `accepted`, which ask for what is done anyway
  kHarmless,  ///< takes it and does nothing, which changes no answer: the note says why
  kRefused,   ///< answers 400, because what it asks for is not supported
};

/// A field of a request's JSON. Tables of these check requests, and docs/server-fields.md shows them.
struct Field {
  std::string_view name;
  FieldType type = FieldType::kAny;
  FieldUse use = FieldUse::kDone;
  std::string_view note = {};  ///< what it does, or why it is refused or harmless; for people
  double least = -1e18;
  double most = 1e18;
  std::string_view accepted = {};  ///< of kOnly: JSON values with spaces between them
  bool required = false;
};

/// The fields that an object may have.
using FieldTable = std::span<const Field>;

/// An object of a request whose members have been checked against a table.
class Fields {
 public:
  /// Throws HttpError(400), naming the field with its path, for members that are not in the table, are
  /// refused, are missing, or have a wrong type or a value out of range. `path` is that of the object within
  /// the request ("messages[2]"), empty for the request itself; `object` must outlive the Fields.
  Fields(const Json& object, FieldTable table, std::string path = {});

  /// The value of a field of the table; null if it is absent or null.
  const Json* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::optional<bool> boolean(std::string_view name) const;
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  /// The strings of a kTextOrTexts field; none if it is absent.
  std::vector<std::string> texts(std::string_view name) const;
  /// An object field's members, checked against a table of their own; nothing if it is absent.
  std::optional<Fields> object(std::string_view name, FieldTable table) const;
  /// The objects of a list field, each checked against a table; none if it is absent.
  std::vector<Fields> objects(std::string_view name, FieldTable table) const;

  /// The path of a field of this object: "messages[2].role".
  std::string path_of(std::string_view name) const;
  const Json& json() const { return *object_; }
  /// Throws HttpError(400) about a field of this object.
  [[noreturn]] void refuse(std::string_view name, const std::string& message,
                           const std::string& code = {}) const;

 private:
  const Json* object_;
  std::string path_;
};

/// "a string", "an integer from 1 to 5": what a field may hold, for messages and for docs/server-fields.md.
std::string describe(const Field& field);

}  // namespace verbatim::serve
