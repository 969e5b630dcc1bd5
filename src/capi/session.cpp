// Sessions: one sequence, on the thread of the caller.

#include <algorithm>

#include "capi/call.h"
#include "capi/handles.h"
#include "capi/options.h"

using namespace verbatim;
using namespace verbatim::capi;

namespace {

using SessionInUse = InUse<SessionObject>;

/// Generates from the end of the sequence and the prompt; each piece of text goes to `on_piece`, if there is
/// one, which may cancel.
GenerateResult generate(Session& session, Request&& request, verbatim_on_piece on_piece, void* user) {
  bool enough = false;
  GenerateOptions& options = request.options;
  options.cancelled = [&enough, asked = std::move(options.cancelled)] {
    return enough || (asked && asked());
  };
  Session::OnText on_text;
  if (on_piece != nullptr) {
    on_text = [&](std::string_view text) {
      const std::string kept(text);
      const verbatim_piece piece = {kept.c_str(), kept.size(), nullptr, 0, nullptr};
      if (on_piece(&piece, user) != 0) enough = true;
    };
  }
  return session.generate(request.prompt, options, request.recipe, on_text);
}

}  // namespace

extern "C" {

verbatim_status verbatim_session_open(verbatim_model* model, int64_t capacity, int32_t threads,
                                      verbatim_session** session) {
  return call([&] {
    cleared(session, "the place for the session");
    open<SessionObject>(session, object_of<ModelObject>(model)->model, capacity, threads);
  });
}

verbatim_status verbatim_session_close(verbatim_session* session) {
  return call([&] {
    if (session != nullptr) take_back(session, Kind::kSession, "session");
  });
}

verbatim_status verbatim_session_set_draft_model(verbatim_session* session, verbatim_model* drafts) {
  return call([&] {
    const SessionInUse object(session);
    object->session.set_draft_model(object_of<ModelObject>(drafts)->model);
  });
}

verbatim_status verbatim_session_generate(verbatim_session* session, const int32_t* tokens, size_t count,
                                          const verbatim_generate_options* options,
                                          verbatim_on_piece on_piece, void* user, verbatim_result** result) {
  return call([&] {
    cleared(result, "the place for the result");
    const SessionInUse object(session);
    Request request = request_of(options);
    request.prompt = tokens_of(tokens, count);
    open<ResultObject>(result, generate(object->session, std::move(request), on_piece, user));
  });
}

verbatim_status verbatim_session_reply(verbatim_session* session, verbatim_chat* chat,
                                       const verbatim_generate_options* options, verbatim_on_piece on_piece,
                                       void* user, verbatim_result** result) {
  return call([&] {
    cleared(result, "the place for the result");
    const SessionInUse object(session);
    Request request = request_of(options);
    std::vector<int32_t> history;
    {
      const InUse<ChatObject> conversation(chat);
      conversation->chat.add_stops(request.options);
      history = conversation->chat.tokens();
    }
    const std::vector<int32_t>& known = object->session.tokens();
    // The last token of the history is evaluated in any case: what follows it is what is asked for.
    const size_t most = history.empty() ? 0 : std::min(known.size(), history.size() - 1);
    const auto end =
        std::mismatch(known.begin(), known.begin() + static_cast<ptrdiff_t>(most), history.begin());
    object->session.truncate(end.first - known.begin());
    request.prompt.assign(end.second, history.end());
    open<ResultObject>(result, generate(object->session, std::move(request), on_piece, user));
  });
}

verbatim_status verbatim_session_truncate(verbatim_session* session, int64_t length) {
  return call([&] {
    const SessionInUse object(session);
    if (length < 0) throw Error(ErrorKind::kUsage, "a sequence cannot be shortened to less than nothing");
    object->session.truncate(length);
  });
}

verbatim_status verbatim_session_tokens(verbatim_session* session, const int32_t** tokens, size_t* count,
                                        int64_t* evaluated) {
  return call([&] {
    cleared(tokens, "the place for the tokens");
    cleared(count, "the place for the count");
    if (evaluated != nullptr) *evaluated = 0;
    const SessionInUse object(session);
    *tokens = object->session.tokens().data();
    *count = object->session.tokens().size();
    if (evaluated != nullptr) *evaluated = object->session.evaluated();
  });
}

verbatim_status verbatim_session_save(verbatim_session* session, const char* path) {
  return call([&] { SessionInUse(session)->session.save(&need(path, "the path")); });
}

verbatim_status verbatim_session_restore(verbatim_session* session, const char* path) {
  return call([&] { SessionInUse(session)->session.restore(&need(path, "the path")); });
}

}  // extern "C"
