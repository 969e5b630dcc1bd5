/* Continues a text in C: the reply appears as it is written, and Ctrl-C ends it.
 *
 *   stream MODEL PROMPT [TOKENS [RECIPE]] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <verbatim/verbatim_c.h>

static volatile sig_atomic_t interrupted = 0;

static void interrupt(int signal) {
  (void)signal;
  interrupted = 1;
}

/* Shows what became final. Anything but 0 would cancel the generation. */
static int show(const verbatim_piece* piece, void* user) {
  (void)user;
  fwrite(piece->text, 1, piece->length, stdout);
  fflush(stdout);
  return interrupted;
}

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) {
    fprintf(stderr, "usage: stream MODEL PROMPT [TOKENS [RECIPE]]\n");
    return VERBATIM_USAGE;
  }
  const char* const recipe = argc > 4 ? argv[4] : "auto";
  signal(SIGINT, interrupt);

  verbatim_load_options load;
  verbatim_load_options_init(&load, sizeof load);
  load.recipe = recipe;
  verbatim_engine_options engine_options;
  verbatim_engine_options_init(&engine_options, sizeof engine_options);
  engine_options.max_batch = 1; /* one text, behind which nothing comes */
  engine_options.prompt_cache = 0;
  verbatim_generate_options options;
  verbatim_generate_options_init(&options, sizeof options);
  options.recipe = recipe;
  if (argc > 3) options.max_tokens = strtoll(argv[3], NULL, 10);

  verbatim_model* model = NULL;
  verbatim_engine* engine = NULL;
  verbatim_stream* stream = NULL;
  verbatim_result* result = NULL;
  verbatim_stats stats;
  verbatim_status status = verbatim_model_load(argv[1], &load, &model);
  if (status == VERBATIM_OK) status = verbatim_engine_open(model, &engine_options, &engine);
  if (status == VERBATIM_OK) status = verbatim_engine_prepare(engine, recipe, NULL, NULL);
  if (status == VERBATIM_OK) {
    status = verbatim_engine_submit_text(engine, argv[2], VERBATIM_TO_NUL, &options, &stream);
  }
  if (status == VERBATIM_OK) status = verbatim_stream_run(stream, show, NULL, &result);
  if (status == VERBATIM_OK) status = verbatim_result_stats(result, &stats, sizeof stats);
  if (status == VERBATIM_OK) {
    fprintf(stderr, "\n%lld tokens at %.1f tokens/s with %s; stopped by %s\n",
            (long long)stats.generated_tokens, stats.tokens_per_second, recipe,
            verbatim_finish_name(stats.finish));
  } else {
    fprintf(stderr, "stream: %s\n", verbatim_error_message());
  }
  verbatim_result_close(result);
  verbatim_stream_close(stream);
  verbatim_engine_close(engine);
  verbatim_model_close(model);
  return status;
}
