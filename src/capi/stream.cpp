// Streams: answers as they come into being.

#include "capi/call.h"
#include "capi/handles.h"

using namespace verbatim;
using namespace verbatim::capi;

namespace {

using StreamInUse = InUse<StreamObject>;

/// Keeps a piece until the next call of its stream and gives it out.
void show(const StreamInUse& object, TokenStream::Piece&& piece, verbatim_piece* out,
          verbatim_stream_state* state) {
  object->piece = PieceView(std::move(piece));
  *out = object->piece.shown();
  *state = VERBATIM_STREAM_PIECE;
}

/// Gives out the whole answer, once.
void finish(const StreamInUse& object, verbatim_result** result) {
  if (object->waited_for) throw Error(ErrorKind::kUsage, "the stream has given out its answer already");
  object->waited_for = true;
  open<ResultObject>(result, object->stream.wait());
}

}  // namespace

extern "C" {

verbatim_status verbatim_stream_next(verbatim_stream* stream, verbatim_piece* piece,
                                     verbatim_stream_state* state) {
  return call([&] {
    cleared(piece, "the place for the piece");
    cleared(state, "the place for the state");
    EngineCallback::refuse_inside();
    const StreamInUse object(stream);
    if (auto next = object->stream.next()) {
      show(object, std::move(*next), piece, state);
    } else {
      *state = VERBATIM_STREAM_END;
    }
  });
}

verbatim_status verbatim_stream_poll(verbatim_stream* stream, verbatim_piece* piece,
                                     verbatim_stream_state* state) {
  return call([&] {
    cleared(piece, "the place for the piece");
    cleared(state, "the place for the state");
    const StreamInUse object(stream);
    const bool done = object->stream.done();
    if (auto next = object->stream.poll()) {
      show(object, std::move(*next), piece, state);
    } else if (done) {
      *state = VERBATIM_STREAM_END;
    }
  });
}

verbatim_status verbatim_stream_run(verbatim_stream* stream, verbatim_on_piece on_piece, void* user,
                                    verbatim_result** result) {
  return call([&] {
    cleared(result, "the place for the result");
    EngineCallback::refuse_inside();
    const StreamInUse object(stream);
    if (on_piece == nullptr) throw BadArgument("the callback for pieces is NULL");
    while (auto next = object->stream.next()) {
      object->piece = PieceView(std::move(*next));
      const verbatim_piece shown = object->piece.shown();
      if (on_piece(&shown, user) != 0) object->stream.cancel();
    }
    finish(object, result);
  });
}

verbatim_status verbatim_stream_wait(verbatim_stream* stream, verbatim_result** result) {
  return call([&] {
    cleared(result, "the place for the result");
    EngineCallback::refuse_inside();
    const StreamInUse object(stream);
    finish(object, result);
  });
}

verbatim_status verbatim_stream_cancel(verbatim_stream* stream) {
  return call([&] { object_of<StreamObject>(stream)->stream.cancel(); });
}

verbatim_status verbatim_stream_done(verbatim_stream* stream, int32_t* done) {
  return call([&] {
    cleared(done, "the place for the answer");
    *done = object_of<StreamObject>(stream)->stream.done() ? 1 : 0;
  });
}

verbatim_status verbatim_stream_close(verbatim_stream* stream) {
  return call([&] {
    if (stream != nullptr) take_back(stream, Kind::kStream, "stream");
  });
}

}  // extern "C"
