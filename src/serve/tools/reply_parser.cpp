#include <set>

#include "serve/conversation.h"
#include "serve/ids.h"
#include "serve/tools/call_reader.h"
#include "serve/tools/forms.h"

namespace verbatim::serve {
namespace {

/// An id that no other call has: of nine letters and digits, which Mistral's templates insist on, or "call_"
/// and 24 of them.
std::string new_call_id(ToolStyle style) {
  constexpr size_t kMistralLength = 9;
  return style == ToolStyle::kMistral ? new_id("").substr(0, kMistralLength) : new_id("call_");
}

/// The text that a call begins with wherever it stands in a reply; empty for styles whose calls are the whole
/// reply.
std::string_view mark_of(ToolStyle style) {
  if (style == ToolStyle::kHermes) return kHermesMark;
  if (style == ToolStyle::kMistral) return kMistralMark;
  return {};
}

}  // namespace

/// Reads a reply byte by byte, so that what it makes of it cannot depend on how the reply was cut into
/// pieces.
struct ReplyParser::State {
  enum class Phase {
    kWords,  ///< words, in which the mark of a call may come
    kRest,   ///< words to the end
    kOpen,   ///< between the mark and the first call
    kCall,   ///< in the object of a call
    kAfter,  ///< behind the object of a call
  };

  ToolStyle style = ToolStyle::kGeneric;
  bool recognizes = false;
  std::set<std::string> names;
  Phase phase = Phase::kWords;
  std::string held;     // what is no event yet: white space, marks and the beginnings of calls
  size_t matched = 0;   // bytes of the current mark that `held` ends with
  size_t opened = 0;    // parts of the form in front of the first call that have come
  bool list = false;    // of Mistral: whether calls stand in a list
  bool behind = false;  // whether no words came since a call
  CallReader call;
  std::vector<ReplyEvent> events;

  void add(ReplyEvent::Kind kind, std::string_view text) {
    if (text.empty()) return;
    if (events.empty() || events.back().kind != kind) events.push_back({.kind = kind});
    events.back().text += text;
  }
  void words(std::string_view text) {
    add(ReplyEvent::Kind::kText, text);
    behind = false;
  }
  void release() {
    words(held);
    held.clear();
    matched = 0;
  }
  void begin_call() {
    held.clear();
    events.push_back({ReplyEvent::Kind::kToolBegin, {}, new_call_id(style), call.name()});
  }
  void end_call() {
    events.push_back({.kind = ReplyEvent::Kind::kToolEnd});
    behind = true;
  }

  /// What was held is no call after all: it and the rest are words, in which a call may begin.
  void fail(char c) {
    release();
    phase = mark_of(style).empty() ? Phase::kRest : Phase::kWords;
    take(c);
  }
  void hold(char c) { held += c; }

  /// Goes on with a mark; true once it is complete.
  bool match(std::string_view mark, char c) {
    if (c != mark[matched]) {
      fail(c);
      return false;
    }
    hold(c);
    if (++matched < mark.size()) return false;
    matched = 0;
    return true;
  }

  void take(char c) {
    switch (phase) {
      case Phase::kWords:
        return take_words(c);
      case Phase::kRest:
        return take_rest(c);
      case Phase::kOpen:
        return take_open(c);
      case Phase::kCall:
        return take_call(c);
      case Phase::kAfter:
        return take_after(c);
    }
  }

  void take_words(char c) {
    const std::string_view mark = mark_of(style);
    if (c != mark[matched]) {
      // No mark has its first byte once more inside, so a failed one cannot hide the beginning of another.
      if (matched > 0 || !is_json_space(c)) release();
      if (c != mark[0]) {
        if (is_json_space(c)) {
          hold(c);
        } else {
          words({&c, 1});
        }
        return;
      }
    }
    hold(c);
    if (++matched < mark.size()) return;
    matched = 0;
    opened = 0;
    begin_object(style == ToolStyle::kHermes ? Phase::kCall : Phase::kOpen);
  }

  void take_rest(char c) {
    if (behind && is_json_space(c)) {
      hold(c);
      return;
    }
    if (!held.empty()) release();
    words({&c, 1});
  }

  void begin_object(Phase next) {
    call = {};
    phase = next;
  }

  void take_open(char c) {
    if (matched == 0 && is_json_space(c)) {
      hold(c);
      return;
    }
    switch (style) {
      case ToolStyle::kHermes:
        break;
      case ToolStyle::kMistral:
        list = c == '[';
        begin_object(Phase::kCall);
        return list ? hold(c) : take_call(c);
      case ToolStyle::kLlama3:
        if (matched == 0 && c != kLlama3Mark[0]) {
          begin_object(Phase::kCall);
          return take_call(c);
        }
        if (match(kLlama3Mark, c)) begin_object(Phase::kCall);
        return;
      case ToolStyle::kGeneric: {
        static constexpr std::string_view kParts[] = {"{", kGenericKey, ":", "["};
        if (match(kParts[opened], c) && ++opened == std::size(kParts)) begin_object(Phase::kCall);
        return;
      }
    }
  }

  void take_call(char c) {
    const CallReader::Part part = call.take(c);
    switch (part) {
      case CallReader::Part::kName:
        if (!names.contains(call.name())) return fail(c);
        [[fallthrough]];
      case CallReader::Part::kForm:
        return hold(c);
      case CallReader::Part::kBeginsArguments:
        begin_call();
        [[fallthrough]];
      case CallReader::Part::kArguments:
        return add(ReplyEvent::Kind::kToolArguments, {&c, 1});
      case CallReader::Part::kEndsArguments:
        add(ReplyEvent::Kind::kToolArguments, {&c, 1});
        return end_call();
      case CallReader::Part::kEnd:
        if (!call.early_arguments().empty()) {
          begin_call();
          add(ReplyEvent::Kind::kToolArguments, call.early_arguments());
          end_call();
        }
        held.clear();
        matched = 0;
        opened = 0;
        phase = Phase::kAfter;
        if (style == ToolStyle::kMistral && !list) close();
        return;
      case CallReader::Part::kBad:
        return fail(c);
    }
  }

  /// The form around the calls is complete.
  void close() {
    held.clear();
    phase = mark_of(style).empty() ? Phase::kRest : Phase::kWords;
  }

  void take_after(char c) {
    if (matched == 0 && is_json_space(c)) return hold(c);
    switch (style) {
      case ToolStyle::kHermes:
        if (match(kHermesEnd, c)) close();
        return;
      case ToolStyle::kMistral:
        if (c != ',' && c != ']') return fail(c);
        hold(c);
        return c == ',' ? begin_object(Phase::kCall) : close();
      case ToolStyle::kLlama3:
        if (c != ';' && c != '{') return fail(c);
        begin_object(Phase::kCall);
        return c == ';' ? hold(c) : take_call(c);
      case ToolStyle::kGeneric:
        if (opened == 0 && c == ',') {
          hold(c);
          return begin_object(Phase::kCall);
        }
        if (c != (opened == 0 ? ']' : '}')) return fail(c);
        hold(c);
        if (++opened == 2) close();
        return;
    }
  }

  void finish() {
    // What is held after a call is the rest of its form, which may be cut off, unless it begins another one.
    const bool told = call.complete() && call.early_arguments().empty();
    const bool form = phase == Phase::kAfter || (phase == Phase::kCall && (told || !call.begun()));
    const bool space = matched == 0 && (phase == Phase::kWords || phase == Phase::kRest);
    if (behind && (form || space)) {
      held.clear();
    } else {
      release();
    }
  }
};

ReplyParser::ReplyParser(const Question& question, ToolStyle style) : state_(std::make_shared<State>()) {
  state_->style = style;
  const ToolChoice& choice = question.tool_choice;
  for (const Tool& tool : question.tools) {
    if (choice.kind == ToolChoice::Kind::kNone) break;
    if (choice.kind != ToolChoice::Kind::kNamed || choice.name == tool.name) state_->names.insert(tool.name);
  }
  state_->recognizes = !state_->names.empty();
  state_->phase = mark_of(style).empty() ? State::Phase::kOpen : State::Phase::kWords;
}

std::vector<ReplyEvent> ReplyParser::push(std::string_view text) {
  if (!state_->recognizes) {
    state_->words(text);
  } else {
    for (const char c : text) state_->take(c);
  }
  return std::exchange(state_->events, {});
}

std::vector<ReplyEvent> ReplyParser::finish() {
  state_->finish();
  return std::exchange(state_->events, {});
}

}  // namespace verbatim::serve
