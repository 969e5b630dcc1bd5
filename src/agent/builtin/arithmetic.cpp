#include "agent/builtin/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "agent/json.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr size_t kLongestExpression = 10'000;
constexpr int kDeepestExpression = 200;

class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}

  double value() {
    const double result = sum();
    if (peek() != '\0') fail(fmt::format("`{}` is not understood", shown(text_.substr(at_), kShownBytes)));
    if (!std::isfinite(result)) throw Error(ErrorKind::kBadInput, "the value is no finite number");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorKind::kBadInput, fmt::format("character {} of the expression: {}", at_ + 1, message));
  }

  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  double sum() {
    double result = product();
    while (true) {
      if (take('+')) {
        result += product();
      } else if (take('-')) {
        result -= product();
      } else {
        return result;
      }
    }
  }

  double product() {
    double result = signed_power();
    while (true) {
      const char c = peek();
      if (c == '*' && text_.substr(at_, 2) != "**") {
        ++at_;
        result *= signed_power();
      } else if (c == '/' || c == '%') {
        ++at_;
        const double divisor = signed_power();
        if (divisor == 0) fail("it divides by zero");
        result = c == '/' ? result / divisor : std::fmod(result, divisor);
      } else {
        return result;
      }
    }
  }

  double signed_power() {
    if (++depth_ > kDeepestExpression) fail("it is too deep");
    double result = 0;
    if (take('-')) {
      result = -signed_power();
    } else if (take('+')) {
      result = signed_power();
    } else {
      result = primary();
      const bool stars = peek() == '*' && text_.substr(at_, 2) == "**";
      if (stars || peek() == '^') {
        at_ += stars ? 2 : 1;
        result = std::pow(result, signed_power());
      }
    }
    --depth_;
    return result;
  }

  double primary() {
    const char c = peek();
    if (take('(')) {
      const double result = sum();
      if (!take(')')) fail("`)` is missing");
      return result;
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.') return number();
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) return named();
    fail(c == '\0' ? "it ends where a number should stand"
                   : fmt::format("`{}` stands where a number should", shown(text_.substr(at_), kShownBytes)));
  }

  double number() {
    double result = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), result);
    if (error != std::errc()) fail("a number is not understood");
    at_ = static_cast<size_t>(end - text_.data());
    return result;
  }

  double named() {
    const size_t begin = at_;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name == "pi") return M_PI;
    if (name == "e") return M_E;
    if (!take('(')) {
      at_ = begin;
      fail(fmt::format("`{}` is no number", shown(name, kShownBytes)));
    }
    std::vector<double> values;
    if (!take(')')) {
      const bool list = take('[');  // as Python's min([1, 2])
      do values.push_back(sum());
      while (take(','));
      if ((list && !take(']')) || !take(')')) fail("`)` is missing");
    }
    if (values.empty()) fail(fmt::format("{}() wants a number", name));
    return call(name, values);
  }

  double call(std::string_view name, const std::vector<double>& values) const {
    const double total = std::accumulate(values.begin(), values.end(), 0.0);
    if (name == "min") return *std::min_element(values.begin(), values.end());
    if (name == "max") return *std::max_element(values.begin(), values.end());
    if (name == "sum") return total;
    if (name == "mean") return total / static_cast<double>(values.size());
    if (name == "round" && values.size() == 2) {
      const double scale = std::pow(10.0, values[1]);
      return std::round(values[0] * scale) / scale;
    }
    using Function = double (*)(double);
    static const std::pair<std::string_view, Function> kFunctions[] = {
        {"abs", std::fabs},  {"sqrt", std::sqrt},  {"cbrt", std::cbrt},   {"exp", std::exp},
        {"ln", std::log},    {"log", std::log},    {"log10", std::log10}, {"log2", std::log2},
        {"sin", std::sin},   {"cos", std::cos},    {"tan", std::tan},     {"floor", std::floor},
        {"ceil", std::ceil}, {"round", std::round}};
    for (const auto& [known, function] : kFunctions) {
      if (known != name) continue;
      if (values.size() != 1) fail(fmt::format("{}() takes one number", name));
      return function(values[0]);
    }
    fail(fmt::format("there is no function `{}`", shown(name, kShownBytes)));
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

double arithmetic(std::string_view expression) {
  if (expression.size() > kLongestExpression) {
    throw Error(ErrorKind::kBadInput,
                fmt::format("the expression has more than {} bytes", kLongestExpression));
  }
  return Arithmetic(expression).value();
}

}  // namespace verbatim::agent
