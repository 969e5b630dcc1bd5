#include "serve/json.h"

#include "serve/errors.h"
#include "verbatim/text.h"

namespace verbatim::serve {

namespace {

// Objects look their keys up one after the other, so large ones would take long.
constexpr size_t kMostMembers = 1024;

[[noreturn]] void refuse(const std::string& message) {
  throw HttpError(400, message);
}

/// Takes in what a parser says and makes a value of it.
class Builder {
 public:
  Builder(Json& root, JsonBudget& budget) : root_(root), budget_(budget) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Json& object = *stack_.back();
    if (object.contains(name))
      refuse("the request's JSON has the key " + shown(name, 100) + " twice in one object");
    if (object.size() == kMostMembers) {
      refuse(fmt::format("an object of the request's JSON has more than {} members", kMostMembers));
    }
    if (--budget_.members < 0) {
      refuse(fmt::format("the request's JSON has more than {} members", JsonBudget().members));
    }
    place_ = &object[std::move(name)];
    return true;
  }

  bool parse_error(size_t, const std::string&, const Json::exception& error) {
    const std::string_view what = error.what();
    const size_t end_of_id = what.find("] ");
    refuse(fmt::format("the request's body is not JSON in UTF-8: {}",
                       shown(end_of_id == std::string_view::npos ? what : what.substr(end_of_id + 2), 300)));
  }

 private:
  Json* put(Json&& value) {
    if (--budget_.values < 0) {
      refuse(fmt::format("the request's JSON has more than {} values", JsonBudget().values));
    }
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_object()) {
      *place_ = std::move(value);
      return place_;
    }
    parent.push_back(std::move(value));
    return &parent.back();
  }
  bool add(Json&& value) {
    put(std::move(value));
    return true;
  }
  bool open(Json&& value) {
    if (stack_.size() == kDeepestJson) {
      refuse(fmt::format("the request's JSON lies deeper than {} lists and objects", kDeepestJson));
    }
    stack_.push_back(put(std::move(value)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  Json& root_;
  std::vector<Json*> stack_;  // what is open; nothing is added to a parent while a child is
  Json* place_ = nullptr;     // of the key that came last
  JsonBudget& budget_;
};

}  // namespace

Json parse_body(std::string_view body) {
  Json root;
  JsonBudget budget;
  Builder builder(root, budget);
  Json::sax_parse(body, &builder);
  return root;
}

std::optional<Json> parse_inner(std::string_view text, JsonBudget& budget) {
  Json root;
  Builder builder(root, budget);
  try {
    Json::sax_parse(text, &builder);
  } catch (const HttpError&) {
    return std::nullopt;
  }
  return root;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace verbatim::serve
