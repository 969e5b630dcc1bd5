// Engines: many requests at once.

#include "capi/call.h"
#include "capi/handles.h"
#include "capi/options.h"

using namespace verbatim;
using namespace verbatim::capi;

namespace {

/// The engine of a handle. A callback on a thread of an engine must not call it.
std::shared_ptr<EngineObject> engine_of(const verbatim_engine* handle) {
  auto object = object_of<EngineObject>(handle);
  EngineCallback::refuse_inside();
  return object;
}

}  // namespace

extern "C" {

verbatim_status verbatim_engine_open(verbatim_model* model, const verbatim_engine_options* options,
                                     verbatim_engine** engine) {
  return call([&] {
    cleared(engine, "the place for the engine");
    open<EngineObject>(engine, object_of<ModelObject>(model)->model, options_of(options));
  });
}

verbatim_status verbatim_engine_close(verbatim_engine* engine) {
  return call([&] {
    if (engine == nullptr) return;
    engine_of(engine);
    take_back(engine, Kind::kEngine, "engine");
  });
}

verbatim_status verbatim_engine_set_draft_model(verbatim_engine* engine, verbatim_model* drafts) {
  return call([&] { engine_of(engine)->engine.set_draft_model(object_of<ModelObject>(drafts)->model); });
}

verbatim_status verbatim_engine_prepare(verbatim_engine* engine, const char* recipe,
                                        verbatim_progress progress, void* user) {
  return call([&] { engine_of(engine)->engine.prepare(recipe_of(recipe), progress_of(progress, user)); });
}

verbatim_status verbatim_engine_submit(verbatim_engine* engine, const int32_t* tokens, size_t count,
                                       const verbatim_generate_options* options, verbatim_stream** stream) {
  return call([&] {
    cleared(stream, "the place for the stream");
    const auto object = engine_of(engine);
    Request request = request_of(options);
    request.prompt = tokens_of(tokens, count);
    open<StreamObject>(stream, object->engine.submit(std::move(request)));
  });
}

verbatim_status verbatim_engine_submit_text(verbatim_engine* engine, const char* text, size_t length,
                                            const verbatim_generate_options* options,
                                            verbatim_stream** stream) {
  return call([&] {
    cleared(stream, "the place for the stream");
    const auto object = engine_of(engine);
    Request request = request_of(options);
    request.prompt = object->model.encode(text_of(text, length, "the text"));
    open<StreamObject>(stream, object->engine.submit(std::move(request)));
  });
}

verbatim_status verbatim_engine_submit_chat(verbatim_engine* engine, verbatim_chat* chat,
                                            const verbatim_generate_options* options,
                                            verbatim_stream** stream) {
  return call([&] {
    cleared(stream, "the place for the stream");
    const auto object = engine_of(engine);
    const InUse<ChatObject> conversation(chat);
    Request request = request_of(options);
    conversation->chat.add_stops(request.options);
    request.prompt = conversation->chat.tokens();
    open<StreamObject>(stream, object->engine.submit(std::move(request)));
  });
}

verbatim_status verbatim_engine_batch(verbatim_engine* engine, const char* const* texts, size_t count,
                                      const verbatim_generate_options* options, verbatim_result** results) {
  return call([&] {
    const std::span<verbatim_result*> places = list_of(results, count, "places for the results");
    std::fill(places.begin(), places.end(), nullptr);
    const auto object = engine_of(engine);
    const Request request = request_of(options);
    std::vector<TokenStream> streams;
    try {
      for (const char* const text : list_of(texts, count, "texts")) {
        Request one = request;
        one.prompt = object->model.encode(&need(text, "a text"));
        streams.push_back(object->engine.submit(std::move(one)));
      }
      for (size_t i = 0; i < streams.size(); ++i) open<ResultObject>(&places[i], streams[i].wait());
    } catch (...) {
      for (TokenStream& stream : streams) stream.cancel();
      for (verbatim_result*& place : places) {
        if (place != nullptr) take_back(place, Kind::kResult, "result");
        place = nullptr;
      }
      throw;
    }
  });
}

verbatim_status verbatim_engine_describe(verbatim_engine* engine, verbatim_engine_stats* stats, size_t size) {
  return call([&] { fill_in(stats_of(engine_of(engine)->engine.stats()), stats, size); });
}

}  // extern "C"
