#include "text/chat_format.h"

#include "base/error.h"

namespace verbatim {

namespace {

ChatFormat chatml() {
  ChatFormat format;
  format.name = "chatml";
  format.system_begin = "<|im_start|>system\n";
  format.system_end = "<|im_end|>\n";
  format.reply_end = "<|im_end|>\n";
  format.user_begin = "<|im_start|>user\n";
  format.user_end = "<|im_end|>\n<|im_start|>assistant\n";
  format.stop_tokens = {"<|im_end|>"};
  return format;
}

ChatFormat llama3() {
  ChatFormat format;
  format.name = "llama-3";
  format.system_begin = "<|start_header_id|>system<|end_header_id|>\n\n";
  format.system_end = "<|eot_id|>";
  format.reply_end = "<|eot_id|>";
  format.user_begin = "<|start_header_id|>user<|end_header_id|>\n\n";
  format.user_end = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n";
  format.stop_tokens = {"<|eot_id|>", "<|eom_id|>"};
  return format;
}

ChatFormat llama2() {
  ChatFormat format;
  format.name = "llama-2";
  format.system_inside_user = true;
  format.system_begin = "<<SYS>>\n";
  format.system_end = "\n<</SYS>>\n\n";
  format.reply_end = "</s><s>";
  format.user_begin = "[INST] ";
  format.user_end = " [/INST]";
  format.stop_tokens = {"</s>"};
  return format;
}

ChatFormat mistral() {
  ChatFormat format;
  format.name = "mistral";
  format.system_inside_user = true;
  format.system_end = "\n\n";
  format.reply_end = "</s>";
  format.user_begin = "[INST] ";
  format.user_end = " [/INST]";
  format.stop_tokens = {"</s>"};
  return format;
}

// For models that were never taught to converse: the shape of questions and answers in common training texts.
ChatFormat plain() {
  ChatFormat format;
  format.name = "plain";
  format.system_end = "\n\n";
  format.reply_end = "\n\n";
  format.user_begin = "Question: ";
  format.user_end = "\nAnswer:";
  format.stop_strings = {"\nQuestion:"};
  return format;
}

std::vector<ChatFormat> all_chat_formats() {
  return {chatml(), llama3(), llama2(), mistral(), plain()};
}

}  // namespace

ChatFormat detect_chat_format(const Tokenizer& tokenizer) {
  if (tokenizer.find("<|im_start|>")) return chatml();
  if (tokenizer.find("<|start_header_id|>")) return llama3();
  if (tokenizer.find("[INST]")) return mistral();
  return plain();
}

std::vector<std::string> chat_format_names() {
  std::vector<std::string> names;
  for (const ChatFormat& format : all_chat_formats()) names.push_back(format.name);
  return names;
}

ChatFormat chat_format(std::string_view name) {
  std::string known;
  for (ChatFormat& format : all_chat_formats()) {
    if (format.name == name) return std::move(format);
    known += (known.empty() ? "" : ", ") + format.name;
  }
  fail(ErrorKind::kUsage, "there is no chat format '{}' (there are: {})", name, known);
}

std::vector<PromptPart> render_user_turn(const ChatFormat& format, std::string_view system,
                                         std::string_view user, bool first_turn) {
  std::vector<PromptPart> parts;
  const auto add_format = [&](const std::string& text) { parts.push_back({text, true}); };
  const auto add_system = [&] {
    if (!first_turn || system.empty()) return;
    add_format(format.system_begin);
    parts.push_back({std::string(system), false});
    add_format(format.system_end);
  };
  if (!first_turn) add_format(format.reply_end);
  if (!format.system_inside_user) add_system();
  add_format(format.user_begin);
  if (format.system_inside_user) add_system();
  parts.push_back({std::string(user), false});
  add_format(format.user_end);
  return parts;
}

}  // namespace verbatim
