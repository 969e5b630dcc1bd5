#ifndef VERBATIM_VERBATIM_C_H
#define VERBATIM_VERBATIM_C_H

/* The interface for C, and for languages that call C. docs/c.md shows how its parts go together.
 *
 * Handles. A model, an engine and so on is known by a handle, which a function gives out through its last
 * parameter and which the close function of its kind takes back. A handle that was closed, that is of another
 * kind or that never was one is recognised: the call returns VERBATIM_BAD_ARGUMENT and does nothing. A handle
 * is never given out twice. Closing NULL does nothing. An object may be closed before the objects that were
 * made with it: an engine keeps its model, and a stream outlives its engine.
 *
 * Errors. Every function that can fail returns a verbatim_status. Whenever it is not VERBATIM_OK,
 * verbatim_error_message() gives one line for a person, and what the function gives out is NULL or zero, the
 * struct that it fills in included (-1 from verbatim_model_find_token). No C++ exception leaves the library,
 * and the library never prints and never ends the process.
 *
 * Memory. What a function gives out as a pointer belongs to the object that it was asked of, and stays valid
 * until that object is closed or, where the function says so, until the next call. The library copies what it
 * is given before the function returns, except the `user` pointers of callbacks. Texts are UTF-8; a text
 * comes with its length in bytes, for which VERBATIM_TO_NUL stands for "up to the NUL". What is given out has
 * a NUL behind it that its length does not count.
 *
 * Threads. Models, engines and results may be used by several threads at once. A stream, a chat or a session
 * is for one thread at a time: a call that comes while another thread, or a callback of the same call, is
 * using it returns VERBATIM_USAGE. verbatim_stream_cancel() and verbatim_stream_done() are the exceptions;
 * any thread may call them at any time. A callback must not leave by longjmp() or by an exception.
 *
 * Structs that a program fills in begin with their size. Their init functions set it and the defaults, so
 * that a program built with an older header runs with a newer library. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this interface. A function, a constant or a member of a struct is never taken away or
 * changed as long as the shared library is libverbatim.so.0; every addition counts this up. */
#define VERBATIM_C_VERSION 1

/** As the length of a text: the text ends at its NUL. */
#define VERBATIM_TO_NUL SIZE_MAX

#if defined(__GNUC__)
#define VERBATIM_C_API __attribute__((visibility("default")))
#else
#define VERBATIM_C_API
#endif

/** Why a call failed. The values 1 to 3 are the exit codes of the program `verbatim`. */
typedef enum verbatim_status {
  VERBATIM_OK = 0,
  VERBATIM_BAD_INPUT = 1,    /**< a file, a prompt or a setting is wrong; the message says what and where */
  VERBATIM_USAGE = 2,        /**< wrong use: an option is out of range, or no recipe has the name */
  VERBATIM_MACHINE = 3,      /**< the machine lacks something: memory, an instruction set */
  VERBATIM_BAD_ARGUMENT = 4, /**< an argument is NULL, or a handle is closed or of another kind */
  VERBATIM_CANCELLED = 5     /**< the program's own progress callback ended the work */
} verbatim_status;

/** Why a generation ended. */
typedef enum verbatim_finish {
  VERBATIM_FINISH_LENGTH = 0,    /**< max_tokens were generated */
  VERBATIM_FINISH_EOS = 1,       /**< the model ended the sequence, or said a stop token */
  VERBATIM_FINISH_STOP = 2,      /**< a stop string came */
  VERBATIM_FINISH_CONTEXT = 3,   /**< the sequence reached its capacity */
  VERBATIM_FINISH_CANCELLED = 4, /**< the caller cancelled it */
  VERBATIM_FINISH_DEADLINE = 5   /**< the deadline passed */
} verbatim_finish;

/** What a stream had to give. */
typedef enum verbatim_stream_state {
  VERBATIM_STREAM_EMPTY = 0, /**< there is no piece yet */
  VERBATIM_STREAM_PIECE = 1, /**< a piece was given out */
  VERBATIM_STREAM_END = 2    /**< there will be no more pieces: the answer is complete or has failed */
} verbatim_stream_state;

/** Who says a message of a conversation. */
typedef enum verbatim_role {
  VERBATIM_ROLE_SYSTEM = 0,
  VERBATIM_ROLE_USER = 1,
  VERBATIM_ROLE_ASSISTANT = 2
} verbatim_role;

typedef struct verbatim_model verbatim_model;     /**< weights and a vocabulary */
typedef struct verbatim_engine verbatim_engine;   /**< answers many requests at once */
typedef struct verbatim_stream verbatim_stream;   /**< an answer as it comes into being */
typedef struct verbatim_result verbatim_result;   /**< a whole answer, or the scores of a text */
typedef struct verbatim_chat verbatim_chat;       /**< the history of a conversation */
typedef struct verbatim_session verbatim_session; /**< one sequence that can be cut off, saved and restored */

/** Called now and then with the fraction done, from 0 to 1, on the thread of the call. Anything but 0 ends
 * the work, which then fails with VERBATIM_CANCELLED. */
typedef int (*verbatim_progress)(double fraction, void* user);

/* The library. ------------------------------------------------------------------------------------------ */

/** The version of the library: "0.1.0". */
VERBATIM_C_API const char* verbatim_version(void);
/** The VERBATIM_C_VERSION that the library was built with. */
VERBATIM_C_API int verbatim_c_version(void);
/** What went wrong in the last call of this thread that did not return VERBATIM_OK: one line, valid until the
 * next such call of this thread. Empty before the first. */
VERBATIM_C_API const char* verbatim_error_message(void);
/** The name of a status: "ok", "bad input", "usage", "machine", "bad argument", "cancelled"; "unknown" for
 * any other number. */
VERBATIM_C_API const char* verbatim_status_name(int status);
/** The name of a verbatim_finish: "length", "eos", "stop", "context", "cancelled", "deadline"; "unknown" for
 * any other number. */
VERBATIM_C_API const char* verbatim_finish_name(int finish);
/** The names of the built-in recipes, which live as long as the process. */
VERBATIM_C_API verbatim_status verbatim_recipe_names(const char* const** names, size_t* count);
/** Makes everything in this process compute with kernels that give the same bits on every processor. To be
 * called before a model is loaded. */
VERBATIM_C_API verbatim_status verbatim_use_portable_kernels(void);
/** The names of the instruction set whose kernels are in use and of the processor, which live as long as the
 * process; `threads`: how many threads compute unless another number is asked for. Any parameter may be NULL.
 */
VERBATIM_C_API verbatim_status verbatim_machine(const char** kernels, const char** processor,
                                                int32_t* threads);

/* Models. ----------------------------------------------------------------------------------------------- */

/** How a model is loaded. */
typedef struct verbatim_load_options {
  size_t size;
  const char* recipe; /**< the recipe to load it for: a name, or a path ending in ".toml"; NULL: auto */
  int32_t drafts;     /**< not 0: it is the other model that the recipe drafts with */
  int32_t threads;    /**< threads to pack with; 0: one for every core */
  verbatim_progress progress; /**< NULL: none */
  void* user;                 /**< for progress */
} verbatim_load_options;

/** What a model is. */
typedef struct verbatim_model_info {
  int32_t context;        /**< the longest sequence, in tokens */
  int32_t vocab_size;     /**< every token is at least 0 and below this */
  int32_t has_vocabulary; /**< 0: it takes and gives token ids alone */
  int32_t bos_token;      /**< the token that begins a sequence; -1: none */
} verbatim_model_info;

VERBATIM_C_API void verbatim_load_options_init(verbatim_load_options* options, size_t size);
/** Opens a directory in Hugging Face layout, a .gguf or a .vbt file. `options` may be NULL. */
VERBATIM_C_API verbatim_status verbatim_model_load(const char* path, const verbatim_load_options* options,
                                                   verbatim_model** model);
VERBATIM_C_API verbatim_status verbatim_model_close(verbatim_model* model);
/** Fills in the first `size` bytes of `info`: give sizeof(verbatim_model_info). */
VERBATIM_C_API verbatim_status verbatim_model_describe(verbatim_model* model, verbatim_model_info* info,
                                                       size_t size);
/** A line about the model's files that deserves a person's attention; NULL when there are no more than
 * `index`. */
VERBATIM_C_API verbatim_status verbatim_model_warning(verbatim_model* model, size_t index,
                                                      const char** warning);
/** The tokens that end a sequence. Writes as many as fit into `capacity`; `count` says how many there are. */
VERBATIM_C_API verbatim_status verbatim_model_eos_tokens(verbatim_model* model, int32_t* tokens,
                                                         size_t capacity, size_t* count);
/** The tokens of a text, with the beginning-of-sequence token if `add_bos` is not 0 and the model wants one.
 * Special tokens that are written out in the text are recognized. Writes as many tokens as fit into
 * `capacity`; `count` says how many there are. `tokens` may be NULL if `capacity` is 0. */
VERBATIM_C_API verbatim_status verbatim_model_encode(verbatim_model* model, const char* text, size_t length,
                                                     int32_t add_bos, int32_t* tokens, size_t capacity,
                                                     size_t* count);
/** The text of tokens; control tokens are left out. Writes as many bytes as fit into `capacity`, and a NUL
 * behind them if that fits too; `length` says how many there are without it. */
VERBATIM_C_API verbatim_status verbatim_model_decode(verbatim_model* model, const int32_t* tokens,
                                                     size_t count, char* text, size_t capacity,
                                                     size_t* length);
/** The token that the vocabulary spells like this; -1 if there is none. */
VERBATIM_C_API verbatim_status verbatim_model_find_token(verbatim_model* model, const char* piece,
                                                         int32_t* token);

/* Answers. ---------------------------------------------------------------------------------------------- */

/** A token and the natural logarithm of its probability. */
typedef struct verbatim_token_logprob {
  int32_t token;
  double logprob;
} verbatim_token_logprob;

/** How likely the model held a token that came, and the likeliest tokens at its place, the best first. */
typedef struct verbatim_scored_token {
  int32_t token;
  double logprob;
  const verbatim_token_logprob* top;
  size_t top_count;
} verbatim_scored_token;

/** A part of an answer: text that became final, and the tokens that it ends with. */
typedef struct verbatim_piece {
  const char* text;
  size_t length;
  const int32_t* tokens;
  size_t token_count;
  /** As many as tokens, if top_logprobs asked for them; NULL otherwise. */
  const verbatim_scored_token* logprobs;
} verbatim_piece;

/** The cost of a generation and the fate of its drafts. Times are in seconds. */
typedef struct verbatim_stats {
  int64_t prompt_tokens;    /**< tokens of the prompt that were evaluated, remembered ones left out */
  int64_t generated_tokens; /**< tokens that were generated */
  int64_t drafted;          /**< tokens proposed to the model */
  int64_t accepted;         /**< proposed tokens that verification kept */
  int64_t target_passes;    /**< passes of the model while decoding */
  int64_t draft_passes;     /**< passes of all drafters */
  double seconds_prefill;   /**< time until the first token was known */
  double seconds_decode;    /**< time after that */
  double seconds_draft;     /**< part of the decoding time: proposing */
  double seconds_verify;    /**< part of the decoding time: the model's passes */
  double tokens_per_second; /**< tokens after the first, per second of decoding */
  int32_t finish;           /**< a verbatim_finish */
} verbatim_stats;

VERBATIM_C_API verbatim_status verbatim_result_close(verbatim_result* result);
/** The text, without what only ended it. `length` may be NULL. */
VERBATIM_C_API verbatim_status verbatim_result_text(verbatim_result* result, const char** text,
                                                    size_t* length);
/** The tokens, a final end-of-sequence or stop token included. */
VERBATIM_C_API verbatim_status verbatim_result_tokens(verbatim_result* result, const int32_t** tokens,
                                                      size_t* count);
/** The log-probability of each token, if they were asked for; `count` is 0 otherwise. */
VERBATIM_C_API verbatim_status verbatim_result_logprobs(verbatim_result* result,
                                                        const verbatim_scored_token** logprobs,
                                                        size_t* count);
/** Fills in the first `size` bytes of `stats`: give sizeof(verbatim_stats). */
VERBATIM_C_API verbatim_status verbatim_result_stats(verbatim_result* result, verbatim_stats* stats,
                                                     size_t size);

/* Scores. ----------------------------------------------------------------------------------------------- */

/** How a given text is scored. */
typedef struct verbatim_score_options {
  size_t size;
  int32_t top_logprobs;       /**< likeliest tokens to name at every place, 0 to 64 */
  int32_t threads;            /**< 0: one for every core */
  const char* reading;        /**< the reading of the weights; NULL: "full" */
  verbatim_progress progress; /**< NULL: none */
  void* user;                 /**< for progress */
} verbatim_score_options;

VERBATIM_C_API void verbatim_score_options_init(verbatim_score_options* options, size_t size);
/** Scores a given text. The result has the tokens from the second on, and how likely each was behind those
 * before it (verbatim_result_logprobs). `options` may be NULL. */
VERBATIM_C_API verbatim_status verbatim_model_score(verbatim_model* model, const int32_t* tokens,
                                                    size_t count, const verbatim_score_options* options,
                                                    verbatim_result** result);

/* What is to be generated. ------------------------------------------------------------------------------ */

/** A number that is added to the logit of a token; minus infinity rules the token out. */
typedef struct verbatim_logit_bias {
  int32_t token;
  float bias;
} verbatim_logit_bias;

/** How a generation chooses tokens and where it ends. Callbacks of a request to an engine are called on a
 * thread of the engine, notify also on a thread that submits a request or closes the engine: they must not
 * wait, and must not call an engine. */
typedef struct verbatim_generate_options {
  size_t size;
  const char* recipe;       /**< a name, or a path ending in ".toml"; NULL: auto */
  int64_t max_tokens;       /**< the most tokens to generate (128) */
  uint64_t seed;            /**< the same seed gives the same text */
  float temperature;        /**< 0 takes the likeliest token */
  float top_p;              /**< 1 is off */
  float min_p;              /**< 0 is off */
  int32_t top_k;            /**< 0 is off */
  float repetition_penalty; /**< 1 is off */
  float presence_penalty;   /**< 0 is off */
  float frequency_penalty;  /**< 0 is off */
  int32_t ignore_eos;       /**< not 0: goes on after a token that ends a sequence */
  const char* const* stop;  /**< texts before which generation ends */
  size_t stop_count;
  const int32_t* stop_tokens; /**< tokens with which generation ends too */
  size_t stop_token_count;
  const verbatim_logit_bias* logit_bias;
  size_t logit_bias_count;
  const char* json_schema; /**< holds the reply to a JSON schema; NULL: free text */
  const char* regex;       /**< holds the reply to a regular expression; not beside json_schema */
  int32_t top_logprobs;    /**< log-probabilities of the tokens and of so many likeliest ones; -1: none */
  int32_t priority;        /**< engine: requests of higher priority go first */
  double deadline;         /**< engine: seconds until generation ends with what there is; 0: never */
  int64_t prefill_chunk;   /**< session: prompt tokens per pass (512); changes speed, never the text */
  /** Says which tokens may come next by setting the others of `allowed`, which are all 1, to 0. It must say
   * the same whenever it is asked about the same `generated`. NULL: all may. */
  void (*filter)(const int32_t* generated, size_t count, uint8_t* allowed, size_t vocab_size, void* user);
  /** Asked before every step and every pass over a prompt; anything but 0 cancels. NULL: never. */
  int (*cancelled)(void* user);
  /** Engine: called after each piece that a stream gets and once more at its end, so that a program with many
   * streams need not wait for any: verbatim_stream_poll() then has the piece. It is called by the engine's
   * threads, by a thread that submits a request which has ended at once, and by the thread that closes the
   * engine. The last call may come after another thread has got the result or the error of the stream; none
   * comes after verbatim_engine_batch() has returned for its requests, whether it succeeded or failed, or
   * after the engine is gone (verbatim_engine_close). NULL: none. */
  void (*notify)(void* user);
  void* user; /**< for the three callbacks */
} verbatim_generate_options;

VERBATIM_C_API void verbatim_generate_options_init(verbatim_generate_options* options, size_t size);

/* Engines. ---------------------------------------------------------------------------------------------- */

/** How an engine runs. */
typedef struct verbatim_engine_options {
  size_t size;
  int32_t max_batch;     /**< the most sequences that are evaluated together (8); others wait */
  int32_t threads;       /**< 0: one for every core */
  int64_t capacity;      /**< the most tokens of a sequence; 0: the model's context */
  int64_t cache_bytes;   /**< memory for keys and values; 0: by itself */
  int32_t prompt_cache;  /**< not 0: remembers the beginnings of earlier sequences (1) */
  int32_t prompt_rows;   /**< prompt tokens that join a pass in which others decode (128) */
  const char* cache_dir; /**< a folder in which remembered beginnings are kept as well; NULL: none */
} verbatim_engine_options;

/** The requests that an engine has now, and its work so far. */
typedef struct verbatim_engine_stats {
  int64_t waiting;                  /**< requests whose turn has not come */
  int64_t running;                  /**< requests that are being answered */
  int64_t finished;                 /**< requests that have ended */
  int64_t preemptions;              /**< how often a sequence lost its memory and was evaluated anew */
  int64_t passes;                   /**< passes of the whole model */
  int64_t rows;                     /**< tokens that these passes evaluated */
  double seconds;                   /**< time that these passes took */
  int64_t prompt_tokens_remembered; /**< tokens of prompts that need not be evaluated */
  int64_t cache_bytes;              /**< memory for keys and values */
  int64_t cache_bytes_taken;        /**< part of cache_bytes that is in use */
} verbatim_engine_stats;

VERBATIM_C_API void verbatim_engine_options_init(verbatim_engine_options* options, size_t size);
/** Makes an engine, with threads of its own. `options` may be NULL. */
VERBATIM_C_API verbatim_status verbatim_engine_open(verbatim_model* model,
                                                    const verbatim_engine_options* options,
                                                    verbatim_engine** engine);
/** Cancels every request that is not finished and waits for their ends. While another thread is in a call of
 * the engine, it only takes the handle back and returns: that call goes on as if nothing had happened, and as
 * it ends it does on its own thread what closing does. Let such calls end first where it matters that no
 * callback is called any more. */
VERBATIM_C_API verbatim_status verbatim_engine_close(verbatim_engine* engine);
/** Gives the model that recipes with another model draft with, before the first request. */
VERBATIM_C_API verbatim_status verbatim_engine_set_draft_model(verbatim_engine* engine,
                                                               verbatim_model* drafts);
/** Gets what a recipe needs before its first use, which may take seconds: what passes cost on this machine.
 * The first request does so itself. `recipe` NULL: auto. `progress` must not call an engine or wait for a
 * stream: this returns VERBATIM_USAGE there. */
VERBATIM_C_API verbatim_status verbatim_engine_prepare(verbatim_engine* engine, const char* recipe,
                                                       verbatim_progress progress, void* user);
/** Takes a request in: tokens to continue. `options` may be NULL. */
VERBATIM_C_API verbatim_status verbatim_engine_submit(verbatim_engine* engine, const int32_t* tokens,
                                                      size_t count, const verbatim_generate_options* options,
                                                      verbatim_stream** stream);
/** Takes a text to continue in. */
VERBATIM_C_API verbatim_status verbatim_engine_submit_text(verbatim_engine* engine, const char* text,
                                                           size_t length,
                                                           const verbatim_generate_options* options,
                                                           verbatim_stream** stream);
/** Takes the next reply of a conversation in; it ends where a reply ends in the conversation's format. */
VERBATIM_C_API verbatim_status verbatim_engine_submit_chat(verbatim_engine* engine, verbatim_chat* chat,
                                                           const verbatim_generate_options* options,
                                                           verbatim_stream** stream);
/** Continues `count` texts together and waits for all; `results` has room for as many. If one fails, all are
 * cancelled, their ends are waited for, and every result is NULL. No callback of `options` is called any more
 * when it returns. */
VERBATIM_C_API verbatim_status verbatim_engine_batch(verbatim_engine* engine, const char* const* texts,
                                                     size_t count, const verbatim_generate_options* options,
                                                     verbatim_result** results);
/** Fills in the first `size` bytes of `stats`: give sizeof(verbatim_engine_stats). */
VERBATIM_C_API verbatim_status verbatim_engine_describe(verbatim_engine* engine, verbatim_engine_stats* stats,
                                                        size_t size);

/* Streams. ---------------------------------------------------------------------------------------------- */

/** Called with each piece of an answer, on the thread of the call; the piece is valid until it returns.
 * Anything but 0 cancels the generation, whose result then has what there was until then. */
typedef int (*verbatim_on_piece)(const verbatim_piece* piece, void* user);

/** Waits for the next piece. `state` is VERBATIM_STREAM_PIECE, and the piece valid until the next call of
 * this stream, or VERBATIM_STREAM_END. */
VERBATIM_C_API verbatim_status verbatim_stream_next(verbatim_stream* stream, verbatim_piece* piece,
                                                    verbatim_stream_state* state);
/** Gives out the next piece if there is one, and never waits. */
VERBATIM_C_API verbatim_status verbatim_stream_poll(verbatim_stream* stream, verbatim_piece* piece,
                                                    verbatim_stream_state* state);
/** Calls `on_piece` with every piece until the answer is complete, and gives out the whole answer. */
VERBATIM_C_API verbatim_status verbatim_stream_run(verbatim_stream* stream, verbatim_on_piece on_piece,
                                                   void* user, verbatim_result** result);
/** Waits for the whole answer. To be called once, by verbatim_stream_run() or by the program. Fails with what
 * ended the answer, if something did. */
VERBATIM_C_API verbatim_status verbatim_stream_wait(verbatim_stream* stream, verbatim_result** result);
/** Cancels the request: what there is before the next step is the answer. */
VERBATIM_C_API verbatim_status verbatim_stream_cancel(verbatim_stream* stream);
/** Whether the answer is complete or has failed. */
VERBATIM_C_API verbatim_status verbatim_stream_done(verbatim_stream* stream, int32_t* done);
/** Does not cancel the request. */
VERBATIM_C_API verbatim_status verbatim_stream_close(verbatim_stream* stream);

/* Conversations. ---------------------------------------------------------------------------------------- */

/** Begins a conversation. `system` is told to the model first; NULL: nothing is. `format` is the name of a
 * chat format; NULL: the model's own template. */
VERBATIM_C_API verbatim_status verbatim_chat_open(verbatim_model* model, const char* system,
                                                  const char* format, verbatim_chat** chat);
VERBATIM_C_API verbatim_status verbatim_chat_close(verbatim_chat* chat);
/** Adds a message of the user. */
VERBATIM_C_API verbatim_status verbatim_chat_add_user(verbatim_chat* chat, const char* text, size_t length);
/** Adds the reply that was generated for the conversation. */
VERBATIM_C_API verbatim_status verbatim_chat_add_reply(verbatim_chat* chat, verbatim_result* result);
/** Adds a reply that is given as text. */
VERBATIM_C_API verbatim_status verbatim_chat_add_reply_text(verbatim_chat* chat, const char* text,
                                                            size_t length);
/** Begins anew, with the same system text. */
VERBATIM_C_API verbatim_status verbatim_chat_clear(verbatim_chat* chat);
/** The name of the conversation's format; "template" where a template writes it. */
VERBATIM_C_API verbatim_status verbatim_chat_format(verbatim_chat* chat, const char** format);
/** The tokens of the whole history, valid until the conversation changes. */
VERBATIM_C_API verbatim_status verbatim_chat_tokens(verbatim_chat* chat, const int32_t** tokens,
                                                    size_t* count);
/** A message of the history, the system's first, valid until the conversation changes; `text` is NULL when
 * there are no more than `index`. */
VERBATIM_C_API verbatim_status verbatim_chat_message(verbatim_chat* chat, size_t index, verbatim_role* role,
                                                     const char** text, size_t* length);

/* Sessions. --------------------------------------------------------------------------------------------- */

/** Begins a sequence of at most `capacity` tokens (0: the model's context), computed with `threads` threads
 * (0: one for every core). */
VERBATIM_C_API verbatim_status verbatim_session_open(verbatim_model* model, int64_t capacity, int32_t threads,
                                                     verbatim_session** session);
VERBATIM_C_API verbatim_status verbatim_session_close(verbatim_session* session);
/** Gives the model that recipes with another model draft with. */
VERBATIM_C_API verbatim_status verbatim_session_set_draft_model(verbatim_session* session,
                                                                verbatim_model* drafts);
/** Appends tokens to the sequence and generates from there, on the calling thread. `options` and `on_piece`,
 * whose pieces have text alone, may be NULL. */
VERBATIM_C_API verbatim_status verbatim_session_generate(verbatim_session* session, const int32_t* tokens,
                                                         size_t count,
                                                         const verbatim_generate_options* options,
                                                         verbatim_on_piece on_piece, void* user,
                                                         verbatim_result** result);
/** Generates the next reply of a conversation: keeps what the sequence has of its tokens, forgets the rest,
 * and appends what is missing. */
VERBATIM_C_API verbatim_status verbatim_session_reply(verbatim_session* session, verbatim_chat* chat,
                                                      const verbatim_generate_options* options,
                                                      verbatim_on_piece on_piece, void* user,
                                                      verbatim_result** result);
/** Forgets the tokens from `length` on. */
VERBATIM_C_API verbatim_status verbatim_session_truncate(verbatim_session* session, int64_t length);
/** Every token so far, valid until the next call that changes the sequence; `evaluated`, which may be NULL,
 * is how many of them the next call need not evaluate. */
VERBATIM_C_API verbatim_status verbatim_session_tokens(verbatim_session* session, const int32_t** tokens,
                                                       size_t* count, int64_t* evaluated);
/** Writes the sequence to a new file, for this model on this kind of machine. */
VERBATIM_C_API verbatim_status verbatim_session_save(verbatim_session* session, const char* path);
/** Makes the sequence the one that was saved: the next call goes on with the same bytes. */
VERBATIM_C_API verbatim_status verbatim_session_restore(verbatim_session* session, const char* path);

#ifdef __cplusplus
}
#endif

#endif
