// Conversations.

#include "capi/call.h"
#include "capi/handles.h"

using namespace verbatim;
using namespace verbatim::capi;

namespace {

using ChatInUse = InUse<ChatObject>;

verbatim_role role_of(ChatMessage::Role role) {
  switch (role) {
    case ChatMessage::Role::kSystem:
      return VERBATIM_ROLE_SYSTEM;
    case ChatMessage::Role::kUser:
      return VERBATIM_ROLE_USER;
    case ChatMessage::Role::kAssistant:
      break;
  }
  return VERBATIM_ROLE_ASSISTANT;
}

}  // namespace

extern "C" {

verbatim_status verbatim_chat_open(verbatim_model* model, const char* system, const char* format,
                                   verbatim_chat** chat) {
  return call([&] {
    cleared(chat, "the place for the chat");
    const Model partner = object_of<ModelObject>(model)->model;
    const std::string told = system == nullptr ? "" : system;
    if (format == nullptr) {
      open<ChatObject>(chat, Chat(partner, told));
    } else {
      open<ChatObject>(chat, Chat(partner, chat_format(format), told));
    }
  });
}

verbatim_status verbatim_chat_close(verbatim_chat* chat) {
  return call([&] {
    if (chat != nullptr) take_back(chat, Kind::kChat, "chat");
  });
}

verbatim_status verbatim_chat_add_user(verbatim_chat* chat, const char* text, size_t length) {
  return call([&] { ChatInUse(chat)->chat.add_user(text_of(text, length, "the text")); });
}

verbatim_status verbatim_chat_add_reply(verbatim_chat* chat, verbatim_result* result) {
  return call([&] {
    const ChatInUse object(chat);
    object->chat.add_reply(object_of<ResultObject>(result)->result);
  });
}

verbatim_status verbatim_chat_add_reply_text(verbatim_chat* chat, const char* text, size_t length) {
  return call([&] { ChatInUse(chat)->chat.add_reply(text_of(text, length, "the text")); });
}

verbatim_status verbatim_chat_clear(verbatim_chat* chat) {
  return call([&] { ChatInUse(chat)->chat.clear(); });
}

verbatim_status verbatim_chat_format(verbatim_chat* chat, const char** format) {
  return call([&] {
    cleared(format, "the place for the name");
    *format = ChatInUse(chat)->chat.format().name.c_str();
  });
}

verbatim_status verbatim_chat_tokens(verbatim_chat* chat, const int32_t** tokens, size_t* count) {
  return call([&] {
    cleared(tokens, "the place for the tokens");
    cleared(count, "the place for the count");
    const ChatInUse object(chat);
    *tokens = object->chat.tokens().data();
    *count = object->chat.tokens().size();
  });
}

verbatim_status verbatim_chat_message(verbatim_chat* chat, size_t index, verbatim_role* role,
                                      const char** text, size_t* length) {
  return call([&] {
    cleared(role, "the place for the role");
    cleared(text, "the place for the text");
    if (length != nullptr) *length = 0;
    const ChatInUse object(chat);
    const std::vector<ChatMessage>& messages = object->chat.messages();
    if (index >= messages.size()) return;
    *role = role_of(messages[index].role);
    *text = messages[index].text.c_str();
    if (length != nullptr) *length = messages[index].text.size();
  });
}

}  // extern "C"
