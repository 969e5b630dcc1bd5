// Engines: many requests at once.

#include <future>

#include "capi/call.h"
#include "capi/handles.h"
#include "capi/options.h"

using namespace verbatim;
using namespace verbatim::capi;

namespace {

/// The engine of a handle. A callback must not call it.
std::shared_ptr<EngineObject> engine_of(const verbatim_engine* handle) {
  EngineCallback::refuse_inside();
  return object_of<EngineObject>(handle);
}

/// Requests that differ in their texts alone. When it goes, every request has ended and no callback is being
/// called or will be.
class Batch {
 public:
  Batch(EngineObject& engine, Request&& request) : engine_(engine), request_(std::move(request)) {
    if (!request_.notify) return;
    // A stream calls `notify` for the last time after it has ended. What its function holds goes with it.
    auto held = std::make_shared<std::promise<void>>();
    notified_ = held->get_future();
    request_.notify = [held = std::move(held), notify = std::move(request_.notify)] { notify(); };
  }
  ~Batch() {
    for (TokenStream& stream : streams_) stream.cancel();
    for (TokenStream& stream : streams_) {
      try {
        stream.wait();
      } catch (...) {  // the call has its error already
      }
    }
    streams_.clear();
    request_.notify = {};
    if (notified_.valid()) notified_.wait();
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void submit(const char* text) {
    Request one = request_;
    one.prompt = engine_.model.encode(text);
    streams_.push_back(engine_.engine.submit(std::move(one)));
  }
  TokenStream& stream(size_t index) { return streams_[index]; }

 private:
  EngineObject& engine_;
  Request request_;
  std::vector<TokenStream> streams_;
  std::future<void> notified_;
};

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
  return call([&] {
    const auto object = engine_of(engine);
    std::function<void(double)> told;
    if (progress != nullptr) {
      told = [tell = progress_of(progress, user)](double fraction) {
        const EngineCallback here(EngineCallback::kOfPrepare);
        tell(fraction);
      };
    }
    object->engine.prepare(recipe_of(recipe), told);
  });
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
    Batch batch(*object, request_of(options));
    try {
      for (const char* const text : list_of(texts, count, "texts")) batch.submit(&need(text, "a text"));
      for (size_t i = 0; i < count; ++i) open<ResultObject>(&places[i], batch.stream(i).wait());
    } catch (...) {
      for (verbatim_result*& place : places) {
        if (place != nullptr) take_back(place, Kind::kResult, "result");
        place = nullptr;
      }
      throw;
    }
  });
}

verbatim_status verbatim_engine_describe(verbatim_engine* engine, verbatim_engine_stats* stats, size_t size) {
  return call([&] {
    StructToFill place(stats, size);
    place = stats_of(engine_of(engine)->engine.stats());
  });
}

}  // extern "C"
