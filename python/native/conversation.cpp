#include "conversation.h"

#include <pybind11/stl.h>

#include <array>
#include <utility>

#include "arguments.h"
#include "errors.h"

namespace verbatim::python {

namespace py = pybind11;

namespace {

Talk begin(std::shared_ptr<LoadedModel> model, py::handle system, py::handle format) {
  const std::string text = text_of(system, "system");
  const Model loaded = model->model();
  if (format.is_none()) return {std::move(model), Chat(loaded, text)};
  return {std::move(model), Chat(loaded, chat_format(text_of(format, "format")), text)};
}

Talk with_message(const Talk& talk, py::handle text) {
  Talk next = talk;
  next.chat.add_user(text_of(text, "the message"));
  return next;
}

/// The conversation with a reply that was written by someone.
Talk with_text(const Talk& talk, py::handle text) {
  Talk next = talk;
  next.chat.add_reply(text_of(text, "the reply"));
  return next;
}

FinishReason reason_of(const std::string& name) {
  using enum FinishReason;
  for (const FinishReason reason : {kLength, kEndOfSequence, kStopString, kContext, kCancelled, kDeadline}) {
    if (name == finish_reason_name(reason)) return reason;
  }
  refuse_use("there is no reason \"" + name + "\" for the end of a reply");
}

/// The conversation with a reply that the model said: its bytes, its tokens and why it ended.
Talk with_reply(const Talk& talk, const py::bytes& raw, py::handle tokens, py::handle finish_reason) {
  GenerateResult result;
  result.text = raw;
  result.tokens = tokens_of(tokens, "the tokens of a reply");
  result.stats.finish = reason_of(text_of(finish_reason, "finish_reason"));
  Talk next = talk;
  next.chat.add_reply(result);
  return next;
}

std::shared_ptr<Answer> ask_talk(const Talk& talk, const char* function, const py::dict& arguments,
                                 bool pieces) {
  ChosenOptions options = chosen_options(function, arguments);
  talk.chat.add_stops(options.generate);
  const auto wakes = pieces ? Answer::Wakes::kPieces : Answer::Wakes::kEnd;
  const Unlocked released;
  return talk.model->ask(talk.chat.tokens(), std::move(options), wakes, std::make_shared<Waker>());
}

py::list messages_of(const Talk& talk) {
  static constexpr std::array kRoles = {"system", "user", "assistant"};
  py::list messages;
  for (const ChatMessage& message : talk.chat.messages()) {
    py::dict each;
    each["role"] = kRoles[static_cast<size_t>(message.role)];
    each["content"] = str_of(message.text);
    messages.append(each);
  }
  return messages;
}

/// The tokens that mark a call of a tool in replies, which would be no part of the text otherwise.
std::vector<int32_t> call_marks(const Model& model) {
  std::vector<int32_t> tokens;
  for (const char* const mark : {"<tool_call>", "</tool_call>", "[TOOL_CALLS]"}) {
    if (const auto token = model.find_token(mark)) tokens.push_back(*token);
  }
  return tokens;
}

/// The answer to a conversation that the model's template writes, whose variables are given as JSON.
std::shared_ptr<Answer> ask_template(const std::shared_ptr<LoadedModel>& model, const char* function,
                                     py::handle variables, bool tools, const py::dict& arguments,
                                     bool pieces) {
  ChosenOptions options = chosen_options(function, arguments);
  const std::string json = text_of(variables, "the messages");
  const auto wakes = pieces ? Answer::Wakes::kPieces : Answer::Wakes::kEnd;
  const Unlocked released;
  const Model loaded = model->model();
  const ChatTemplate chat_template = ChatTemplate::of(loaded);
  if (tools && !chat_template.reads("tools")) {
    throw Error(ErrorKind::kBadInput, "the model's chat template knows no tools: describe them in a message");
  }
  if (tools && options.generate.shown_tokens.empty()) options.generate.shown_tokens = call_marks(loaded);
  Chat(loaded).add_stops(options.generate);
  return model->ask(encode(loaded, chat_template.render(json, &loaded)), std::move(options), wakes,
                    std::make_shared<Waker>());
}

}  // namespace

void bind_conversations(py::module_& module) {
  py::class_<Talk>(module, "Talk", "A conversation at one moment.")
      .def(py::init(&begin), py::arg("model"), py::arg("system"), py::arg("format"))
      .def("with_message", with_message, py::arg("text"))
      .def("with_text", with_text, py::arg("text"))
      .def("with_reply", with_reply, py::arg("raw"), py::arg("tokens"), py::arg("finish_reason"))
      .def("ask", ask_talk, py::arg("function"), py::arg("arguments"), py::arg("pieces"))
      .def_property_readonly("messages", messages_of)
      .def_property_readonly("tokens", [](const Talk& talk) { return talk.chat.tokens(); });
  module.def("ask_template", ask_template, py::arg("model"), py::arg("function"), py::arg("variables"),
             py::arg("tools"), py::arg("arguments"), py::arg("pieces"));
}

}  // namespace verbatim::python
