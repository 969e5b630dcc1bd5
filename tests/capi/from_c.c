/* Compiled as C99 with warnings for what C++ and other compilers would not take. */

#include <string.h>

#include "verbatim/verbatim_c.h"

/* Continues "abc" by eight tokens with a model; 0, and the text, if all goes well. */
int answer_from_c(const char* path, char* text, size_t capacity);

int answer_from_c(const char* path, char* text, size_t capacity) {
  verbatim_load_options load;
  verbatim_generate_options options;
  verbatim_model* model = NULL;
  verbatim_engine* engine = NULL;
  verbatim_stream* stream = NULL;
  verbatim_result* result = NULL;
  const char* said = NULL;
  verbatim_status status;

  verbatim_load_options_init(&load, sizeof load);
  load.recipe = "plain";
  verbatim_generate_options_init(&options, sizeof options);
  options.recipe = "plain";
  options.max_tokens = 8;
  options.ignore_eos = 1;
  status = verbatim_model_load(path, &load, &model);
  if (status == VERBATIM_OK) status = verbatim_engine_open(model, NULL, &engine);
  if (status == VERBATIM_OK) {
    status = verbatim_engine_submit_text(engine, "abc", VERBATIM_TO_NUL, &options, &stream);
  }
  if (status == VERBATIM_OK) status = verbatim_stream_wait(stream, &result);
  if (status == VERBATIM_OK) status = verbatim_result_text(result, &said, NULL);
  if (status == VERBATIM_OK) strncpy(text, said, capacity - 1);
  verbatim_result_close(result);
  verbatim_stream_close(stream);
  verbatim_engine_close(engine);
  verbatim_model_close(model);
  return (int)status;
}
