#include "token_list.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "fail.h"
#include "verbatim/text.h"

namespace verbatim::app {

namespace {

constexpr size_t kLongestEcho = 40;
constexpr int kNumberTooLarge = 406;  // as the parser numbers its errors

/// Takes the pieces of the JSON text as they are read, so that no tree is built of what may be a large or a
/// deeply nested text.
class TokenListReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TokenListReader(const std::string& where) : where_(where) {}

  std::vector<int32_t> take() { return std::move(tokens_); }

  bool null() override { refuse("null"); }
  bool boolean(bool value) override { refuse(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    if (state_ != State::kList || value < std::numeric_limits<int32_t>::min())
      refuse(fmt::format("{}", value));
    tokens_.push_back(static_cast<int32_t>(value));
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::kList || value > std::numeric_limits<int32_t>::max())
      refuse(fmt::format("{}", value));
    tokens_.push_back(static_cast<int32_t>(value));
    return true;
  }
  bool number_float(number_float_t, const string_t& digits) override { refuse(digits); }
  bool string(string_t& value) override { refuse("\"" + shown(value, kLongestEcho) + "\""); }
  bool binary(binary_t&) override { refuse("binary data"); }

  bool start_object(size_t) override {
    if (state_ != State::kBegin) refuse("an object");
    state_ = State::kObject;
    return true;
  }
  bool key(string_t& name) override {
    if (name != "tokens" || found_) refuse_text();
    return true;
  }
  bool end_object() override {
    if (!found_) refuse_text();
    return true;
  }
  bool start_array(size_t) override {
    if (state_ == State::kList) refuse("a list");
    state_ = State::kList;
    found_ = true;
    return true;
  }
  bool end_array() override {
    state_ = State::kObject;
    return true;
  }

  bool parse_error(size_t position, const std::string& last,
                   const nlohmann::json::exception& error) override {
    if (error.id == kNumberTooLarge) refuse(last);
    bad_input("{} is not valid JSON: the mistake is at byte {}, near \"{}\"", where_, position,
              shown(last, kLongestEcho));
  }

 private:
  enum class State { kBegin, kObject, kList };

  /// Refuses a value: an entry of the list, or what stands where the list should.
  [[noreturn]] void refuse(const std::string& value) const {
    if (state_ != State::kList) refuse_text();
    bad_input("{}: entry {} of the list, counted from 0, is {}, which is no token id: ids are whole numbers",
              where_, tokens_.size(), shown(value, kLongestEcho));
  }
  [[noreturn]] void refuse_text() const {
    bad_input("{} should hold a JSON list of token ids, such as [1, 15, 27]", where_);
  }

  const std::string& where_;
  std::vector<int32_t> tokens_;
  State state_ = State::kBegin;
  bool found_ = false;  ///< the list has begun
};

}  // namespace

std::vector<int32_t> parse_token_list(std::string_view text, const std::string& where) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    bad_input("{} is empty: it should hold a JSON list of token ids, such as [1, 15, 27]", where);
  }
  TokenListReader reader(where);
  nlohmann::json::sax_parse(text, &reader);
  return reader.take();
}

}  // namespace verbatim::app
