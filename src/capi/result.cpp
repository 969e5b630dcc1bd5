// Whole answers, and scores.

#include "capi/call.h"
#include "capi/handles.h"

using namespace verbatim;
using namespace verbatim::capi;

extern "C" {

verbatim_status verbatim_result_close(verbatim_result* result) {
  return call([&] {
    if (result != nullptr) take_back(result, Kind::kResult, "result");
  });
}

verbatim_status verbatim_result_text(verbatim_result* result, const char** text, size_t* length) {
  return call([&] {
    cleared(text, "the place for the text");
    if (length != nullptr) *length = 0;
    const auto object = object_of<ResultObject>(result);
    *text = object->result.text.c_str();
    if (length != nullptr) *length = object->result.text.size();
  });
}

verbatim_status verbatim_result_tokens(verbatim_result* result, const int32_t** tokens, size_t* count) {
  return call([&] {
    cleared(tokens, "the place for the tokens");
    cleared(count, "the place for the count");
    const auto object = object_of<ResultObject>(result);
    *tokens = object->result.tokens.data();
    *count = object->result.tokens.size();
  });
}

verbatim_status verbatim_result_logprobs(verbatim_result* result, const verbatim_scored_token** logprobs,
                                         size_t* count) {
  return call([&] {
    cleared(logprobs, "the place for the log-probabilities");
    cleared(count, "the place for the count");
    const auto object = object_of<ResultObject>(result);
    *logprobs = object->logprobs.data();
    *count = object->logprobs.size();
  });
}

verbatim_status verbatim_result_stats(verbatim_result* result, verbatim_stats* stats, size_t size) {
  return call([&] {
    StructToFill place(stats, size);
    place = stats_of(object_of<ResultObject>(result)->result.stats);
  });
}

}  // extern "C"
