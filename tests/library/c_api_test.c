/* The C interface as C sees it: what NULLs and bad input are answered with, and a life of each handle on the default
 * model (with NULLs and bad input only, where that is not there: exit status 77).
 *   c_api_test MODEL.gguf FOLDER   (FOLDER: a session is saved there) */
#include <doppler/doppler_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks = 0, failures = 0;

#define EXPECT(condition)                                             \
  do {                                                                \
    ++checks;                                                         \
    if (!(condition)) {                                               \
      ++failures;                                                     \
      fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
    }                                                                 \
  } while (0)

/* Takes the error: it must be of this kind and its message contain this text. */
#define EXPECT_ERROR(call, kind, part) expect_error((call), (kind), (part), __LINE__)
#define EXPECT_DONE(call) expect_error((call), DOPPLER_OK, "", __LINE__)

static void expect_error(doppler_error* error, doppler_error_kind kind, const char* part, int line) {
  ++checks;
  if (doppler_error_get_kind(error) != kind || !strstr(doppler_error_message(error), part)) {
    ++failures;
    fprintf(stderr, "line %d: kind %d, \"%s\"; expected kind %d, \"%s\"\n", line,
            (int)doppler_error_get_kind(error), doppler_error_message(error), (int)kind, part);
  }
  doppler_error_free(error);
}

/* The call says that its argument of this name is NULL. */
#define EXPECT_NULL(call, name) EXPECT_ERROR(call, DOPPLER_INVALID_INPUT, "The argument " name " of doppler_")

/* Of no use but to be other than NULL where another argument is the one to be checked. */
static int something;
#define SOME(type) ((type*)&something)

static void test_nulls(void) {
  doppler_model* model = SOME(doppler_model);
  doppler_session* session = SOME(doppler_session);
  doppler_stream* stream = SOME(doppler_stream);
  doppler_generation* generation = SOME(doppler_generation);
  doppler_scheduler* scheduler = SOME(doppler_scheduler);
  doppler_model_info info = {.size = sizeof(info)};
  doppler_timings timings = {.size = sizeof(timings)};
  doppler_scheduler_load load = {.size = sizeof(load)};
  doppler_request request = {.size = sizeof(request)};
  int32_t* tokens = NULL;
  char* text = NULL;
  const char* piece = NULL;
  size_t count = 1;

  EXPECT_NULL(doppler_model_load(NULL, NULL, &model), "path");
  EXPECT(model == NULL); /* results are NULL after an error */
  EXPECT_NULL(doppler_model_load("x.gguf", NULL, NULL), "model");
  EXPECT_NULL(doppler_model_get_info(NULL, &info), "model");
  model = SOME(doppler_model);
  EXPECT_NULL(doppler_model_get_info(model, NULL), "info");
  EXPECT_NULL(doppler_model_tokenize(NULL, "x", 1, true, true, &tokens, &count), "model");
  EXPECT(count == 0);
  EXPECT_NULL(doppler_model_tokenize(model, NULL, 1, true, true, &tokens, &count), "text");
  EXPECT_NULL(doppler_model_tokenize(model, "x", 1, true, true, NULL, &count), "tokens");
  EXPECT_NULL(doppler_model_tokenize(model, "x", 1, true, true, &tokens, NULL), "count");
  EXPECT_NULL(doppler_model_detokenize(NULL, NULL, 0, &text, NULL), "model");
  EXPECT_NULL(doppler_model_detokenize(model, NULL, 1, &text, NULL), "tokens");
  EXPECT_NULL(doppler_model_detokenize(model, NULL, 0, NULL, NULL), "text");
  EXPECT_NULL(doppler_model_apply_chat_template(NULL, NULL, 0, true, &text, NULL), "model");
  EXPECT_NULL(doppler_model_apply_chat_template(model, NULL, 1, true, &text, NULL), "messages");
  EXPECT_NULL(doppler_model_new_session(NULL, &session), "model");
  EXPECT(session == NULL);
  EXPECT_NULL(doppler_model_new_session(model, NULL), "session");
  EXPECT_NULL(doppler_model_get_scheduler(NULL, &scheduler), "model");
  EXPECT_NULL(doppler_model_get_scheduler(model, NULL), "scheduler");

  EXPECT_NULL(doppler_session_generate(NULL, "x", NULL, NULL, NULL, &generation), "session");
  EXPECT(generation == NULL);
  session = SOME(doppler_session);
  EXPECT_NULL(doppler_session_generate(session, NULL, NULL, NULL, NULL, &generation), "prompt");
  EXPECT_NULL(doppler_session_generate(session, "x", NULL, NULL, NULL, NULL), "generation");
  EXPECT_NULL(doppler_session_generate_tokens(session, NULL, 2, NULL, NULL, NULL, &generation), "prompt");
  EXPECT_NULL(doppler_session_chat(session, NULL, 2, NULL, NULL, NULL, &generation), "messages");
  EXPECT_NULL(doppler_session_start(NULL, "x", NULL), "session");
  EXPECT_NULL(doppler_session_start(session, NULL, NULL), "prompt");
  EXPECT_NULL(doppler_session_next(NULL, &piece, NULL), "session");
  EXPECT_NULL(doppler_session_next(session, NULL, NULL), "text");
  EXPECT_NULL(doppler_session_finish(NULL, &generation), "session");
  EXPECT_NULL(doppler_session_finish(session, NULL), "generation");
  EXPECT_NULL(doppler_session_fork(NULL, &session), "session");
  session = SOME(doppler_session);
  EXPECT_NULL(doppler_session_fork(session, NULL), "fork");
  EXPECT_NULL(doppler_session_save(NULL, "x"), "session");
  EXPECT_NULL(doppler_session_save(session, NULL), "path");
  EXPECT_NULL(doppler_session_restore(session, NULL), "path");

  EXPECT_NULL(doppler_scheduler_submit(NULL, &request, &stream), "scheduler");
  EXPECT(stream == NULL);
  scheduler = SOME(doppler_scheduler);
  EXPECT_NULL(doppler_scheduler_submit(scheduler, NULL, &stream), "request");
  EXPECT_NULL(doppler_scheduler_submit(scheduler, &request, NULL), "stream");
  EXPECT_NULL(doppler_scheduler_fork(scheduler, NULL, NULL, &stream), "parent");
  EXPECT_NULL(doppler_scheduler_get_load(NULL, &load), "scheduler");
  EXPECT_NULL(doppler_scheduler_get_load(scheduler, NULL), "load");
  EXPECT_NULL(doppler_stream_next(NULL, &piece, NULL), "stream");
  EXPECT_NULL(doppler_stream_finish(NULL, &generation), "stream");
  EXPECT_NULL(doppler_generation_get_timings(NULL, &timings), "generation");
  EXPECT_NULL(doppler_generation_get_timings(SOME(doppler_generation), NULL), "timings");

  /* What cannot fail takes NULL too. */
  count = 1;
  EXPECT(strcmp(doppler_generation_text(NULL, &count), "") == 0 && count == 0);
  EXPECT(doppler_generation_tokens(NULL, NULL) == NULL);
  EXPECT(doppler_generation_stop_reason(NULL) == DOPPLER_STOP_CANCELLED);
  EXPECT(doppler_session_tokens(NULL, &count) == NULL);
  EXPECT(doppler_error_get_kind(NULL) == DOPPLER_OK);
  EXPECT(strcmp(doppler_error_message(NULL), "") == 0);
  doppler_load_options_init(NULL, sizeof(doppler_load_options));
  doppler_generate_options_init(NULL, sizeof(doppler_generate_options));
  doppler_session_cancel(NULL);
  doppler_session_reset(NULL);
  doppler_stream_cancel(NULL);
  doppler_error_free(NULL);
  doppler_free(NULL);
  doppler_generation_free(NULL);
  doppler_stream_free(NULL);
  doppler_scheduler_free(NULL);
  doppler_session_free(NULL);
  doppler_model_free(NULL);
}

static void test_bad_load(void) {
  doppler_model* model = NULL;
  doppler_load_options options;
  EXPECT_ERROR(doppler_model_load("/there/is/no.gguf", NULL, &model), DOPPLER_IO, "/there/is/no.gguf");

  memset(&options, 0, sizeof(options));
  EXPECT_ERROR(doppler_model_load("x.gguf", &options, &model), DOPPLER_INVALID_INPUT,
               "The size in doppler_load_options is 0");
  doppler_load_options_init(&options, sizeof(options));
  EXPECT(options.tuned && options.verify && options.sequences == 1);
  options.kernel_count = 1;
  EXPECT_ERROR(doppler_model_load("x.gguf", &options, &model), DOPPLER_INVALID_INPUT, "kernels is NULL");
  const char* const kernel[] = {"attention"};
  options.kernels = kernel;
  EXPECT_ERROR(doppler_model_load("x.gguf", &options, &model), DOPPLER_INVALID_INPUT, "OPERATION=VARIANT");

  doppler_load_options_init(&options, sizeof(options));
  options.pan_and_scan = 2;
  EXPECT_ERROR(doppler_model_load("x.gguf", &options, &model), DOPPLER_INVALID_INPUT,
               "pan_and_scan is 2; allowed are 0 and 1");

  /* A program with a newer header: what it does not use is no obstacle, what this library cannot do is an error. */
  struct {
    doppler_load_options known;
    uint64_t newer;
  } larger;
  doppler_load_options_init(&larger.known, sizeof(larger));
  EXPECT(larger.known.size == sizeof(larger) && larger.newer == 0);
  EXPECT_ERROR(doppler_model_load("/there/is/no.gguf", &larger.known, &model), DOPPLER_IO,
               "/there/is/no.gguf");
  larger.newer = 1;
  EXPECT_ERROR(doppler_model_load("/there/is/no.gguf", &larger.known, &model), DOPPLER_UNSUPPORTED,
               "this library knows the first");
}

static bool stop_at_once(void* data, const char* stage, uint64_t done, uint64_t total) {
  ++*(int*)data;
  (void)stage;
  return done > total; /* never */
}

typedef struct {
  char text[4096];
  size_t length;
  int pieces, most_pieces;
} told;

static bool keep(void* data, const char* text, size_t length) {
  told* to = data;
  EXPECT(length != 0 && strlen(text) == length && to->length + length < sizeof(to->text));
  memcpy(to->text + to->length, text, length + 1);
  to->length += length;
  return ++to->pieces != to->most_pieces;
}

static void test_tokens(doppler_model* model) {
  int32_t* tokens = NULL;
  size_t count = 0, length = 0;
  char* text = NULL;
  const int32_t outside = 1 << 30;
  EXPECT_DONE(doppler_model_tokenize(model, "The fox", 7, false, false, &tokens, &count));
  EXPECT(count > 0);
  EXPECT_DONE(doppler_model_detokenize(model, tokens, count, &text, &length));
  EXPECT(text && length == 7 && strcmp(text, "The fox") == 0);
  doppler_free(text);
  doppler_free(tokens);
  EXPECT_DONE(doppler_model_tokenize(model, NULL, 0, false, false, &tokens, &count));
  EXPECT(count == 0);
  doppler_free(tokens);
  EXPECT_DONE(doppler_model_tokenize(model, "\xff\xfe\0x", 4, false, false, &tokens, &count)); /* no UTF-8 */
  EXPECT(count > 0);
  doppler_free(tokens);
  EXPECT_DONE(doppler_model_detokenize(model, NULL, 0, &text, &length));
  EXPECT(length == 0 && strcmp(text, "") == 0);
  doppler_free(text);
  EXPECT_ERROR(doppler_model_detokenize(model, &outside, 1, &text, &length), DOPPLER_INVALID_INPUT, "");

  const doppler_message nameless = {.role = NULL, .content = "x"},
                        martian = {.role = "martian", .content = "x"},
                        fine = {.role = "user", .content = "A fox."};
  EXPECT_ERROR(doppler_model_apply_chat_template(model, &nameless, 1, true, &text, &length),
               DOPPLER_INVALID_INPUT, "Message 0 has no role");
  EXPECT_ERROR(doppler_model_apply_chat_template(model, &martian, 1, true, &text, &length),
               DOPPLER_INVALID_INPUT, "A message's role is \"martian\"");
  EXPECT_DONE(doppler_model_apply_chat_template(model, &fine, 1, true, &text, &length));
  EXPECT(text && strstr(text, "A fox.") && strlen(text) == length);
  doppler_free(text);
}

static void test_session(doppler_model* model, const char* saved) {
  doppler_session *session = NULL, *fork = NULL;
  doppler_generation *whole = NULL, *rest = NULL, *again = NULL;
  doppler_generate_options options;
  doppler_timings timings = {.size = sizeof(timings)}, too_small = {.size = 4};
  const char* text = NULL;
  size_t length = 0, count = 0, forked = 0;
  told story = {.most_pieces = 0};

  EXPECT_DONE(doppler_model_new_session(model, &session));
  EXPECT_ERROR(doppler_session_next(session, &text, NULL), DOPPLER_INTERNAL, "start()");
  doppler_generate_options_init(&options, sizeof(options));
  EXPECT(options.top_k == 40 && options.stop_on_device && options.dry_allowed_length == 2);
  options.temperature = -1;
  EXPECT_ERROR(doppler_session_generate(session, "A", &options, NULL, NULL, &whole), DOPPLER_INVALID_INPUT,
               "-1");
  options.temperature = 0;
  options.when_full = (doppler_when_full)7;
  EXPECT_ERROR(doppler_session_generate(session, "A", &options, NULL, NULL, &whole), DOPPLER_INVALID_INPUT,
               "when_full is 7");
  options.when_full = DOPPLER_FULL_STOP;
  options.stop_count = 1;
  EXPECT_ERROR(doppler_session_start(session, "A", &options), DOPPLER_INVALID_INPUT, "stop is NULL");
  options.stop_count = 0;

  options.max_tokens = 12;
  options.logprobs = true;
  options.top_logprobs = 3;
  EXPECT_DONE(doppler_session_generate(session, "Once upon a time", &options, keep, &story, &whole));
  EXPECT(strcmp(doppler_generation_text(whole, &length), story.text) == 0 && length == story.length);
  EXPECT(doppler_generation_tokens(whole, &count) != NULL && count == 12);
  EXPECT(doppler_generation_stop_reason(whole) == DOPPLER_STOP_TOKEN_LIMIT);
  EXPECT(strcmp(doppler_stop_reason_name(DOPPLER_STOP_TOKEN_LIMIT), "token-limit") == 0);
  EXPECT(strcmp(doppler_stop_reason_name((doppler_stop_reason)99), "unknown") == 0);
  EXPECT_DONE(doppler_generation_get_timings(whole, &timings));
  EXPECT(timings.generated_tokens == 12 && timings.prompt_tokens > 0 && timings.ttft_seconds > 0);
  EXPECT_ERROR(doppler_generation_get_timings(whole, &too_small), DOPPLER_INVALID_INPUT,
               "doppler_timings is 4");
  doppler_token_logprob own, best[2];
  size_t best_count = 0;
  EXPECT_DONE(doppler_generation_get_logprobs(whole, 11, &own, best, 2, &best_count));
  EXPECT(best_count == 3 && own.token == doppler_generation_tokens(whole, NULL)[11]);
  EXPECT(own.token == best[0].token && own.logprob <= 0 && best[0].logprob >= best[1].logprob);
  EXPECT_DONE(doppler_generation_get_logprobs(whole, 0, &own, NULL, 0, &best_count));
  EXPECT_ERROR(doppler_generation_get_logprobs(whole, 12, &own, NULL, 0, &best_count), DOPPLER_INVALID_INPUT,
               "log-probabilities of 12");
  EXPECT_NULL(doppler_generation_get_logprobs(whole, 0, NULL, NULL, 0, &best_count), "own");
  options.logprobs = false;
  options.top_logprobs = 0;

  /* A fork goes on as the session itself would; so does what was saved. */
  EXPECT(doppler_session_tokens(session, &count) != NULL && count > 12);
  EXPECT_DONE(doppler_session_save(session, saved));
  EXPECT_DONE(doppler_session_fork(session, &fork));
  EXPECT(doppler_session_tokens(fork, &forked) != NULL && forked == count);
  EXPECT_DONE(doppler_session_start(fork, "", &options));
  for (length = 0;;) {
    size_t piece = 0;
    EXPECT_DONE(doppler_session_next(fork, &text, &piece));
    if (!text) break;
    length += piece;
  }
  EXPECT_DONE(doppler_session_finish(fork, &rest));
  EXPECT(length == strlen(doppler_generation_text(rest, NULL)) && length != 0);
  doppler_session_reset(session);
  EXPECT_ERROR(doppler_session_restore(session, "/there/is/no.session"), DOPPLER_IO, "no.session");
  EXPECT_DONE(doppler_session_restore(session, saved));
  EXPECT_DONE(doppler_session_generate(session, "", &options, NULL, NULL, &again));
  EXPECT(strcmp(doppler_generation_text(again, NULL), doppler_generation_text(rest, NULL)) == 0);
  doppler_generation_free(again);
  doppler_generation_free(rest);
  doppler_generation_free(whole);
  doppler_session_free(fork);

  /* A callback that says enough, and a conversation. */
  const doppler_message question = {.role = "user", .content = "A fox and a crow."};
  story = (told){.most_pieces = 1};
  options.max_tokens = 100;
  options.batch = 4; /* a piece of text a batch */
  EXPECT_DONE(doppler_session_chat(session, &question, 1, &options, keep, &story, &whole));
  EXPECT(doppler_generation_stop_reason(whole) == DOPPLER_STOP_CANCELLED && story.pieces == 1);
  doppler_generation_free(whole);
  doppler_session_free(session);
}

static void test_scheduler(doppler_model* model) {
  doppler_scheduler* scheduler = NULL;
  doppler_stream *streams[2] = {NULL, NULL}, *fork = NULL;
  doppler_generation *first = NULL, *second = NULL;
  doppler_generate_options options;
  doppler_request request = {.size = sizeof(request)};
  doppler_scheduler_load load = {.size = sizeof(load)};
  const char* text = NULL;

  EXPECT_DONE(doppler_model_get_scheduler(model, &scheduler));
  EXPECT_DONE(doppler_scheduler_get_load(scheduler, &load));
  EXPECT(load.running == 0 && load.blocks > 0 && load.block_len > 0);
  EXPECT(load.devices == 1 && load.lost_devices == 0);
  EXPECT_ERROR(doppler_scheduler_submit(scheduler, &request, &streams[0]), DOPPLER_INVALID_INPUT,
               "0 of text, tokens and messages");
  const int32_t token = 5;
  request.text = "Once upon a time";
  request.tokens = &token;
  request.token_count = 1;
  EXPECT_ERROR(doppler_scheduler_submit(scheduler, &request, &streams[0]), DOPPLER_INVALID_INPUT,
               "2 of text, tokens and messages");
  request.tokens = NULL;
  request.priority = 99;
  EXPECT_ERROR(doppler_scheduler_submit(scheduler, &request, &streams[0]), DOPPLER_INVALID_INPUT, "99");
  request.priority = 0;
  request.deadline_seconds = 1e300;
  EXPECT_ERROR(doppler_scheduler_submit(scheduler, &request, &streams[0]), DOPPLER_INVALID_INPUT, "1e+300");
  request.deadline_seconds = 0;

  doppler_generate_options_init(&options, sizeof(options));
  options.temperature = 0;
  options.max_tokens = 12;
  request.options = &options;
  EXPECT_DONE(doppler_scheduler_submit(scheduler, &request, &streams[0]));
  EXPECT_DONE(doppler_scheduler_submit(scheduler, &request, &streams[1]));
  EXPECT_DONE(doppler_stream_next(streams[1], &text, NULL));
  EXPECT(text != NULL);
  EXPECT_DONE(doppler_stream_finish(streams[0], &first));
  EXPECT_DONE(doppler_stream_finish(streams[1], &second));
  EXPECT(strlen(doppler_generation_text(first, NULL)) > 0);
  EXPECT(strcmp(doppler_generation_text(first, NULL), doppler_generation_text(second, NULL)) == 0);
  doppler_generation_free(second);

  options.grammar_kind = DOPPLER_GRAMMAR_REGEX;
  EXPECT_ERROR(doppler_scheduler_submit(scheduler, &request, &fork), DOPPLER_INVALID_INPUT, "grammar is NULL");
  options.grammar = "(fox|crow), and that was the end of it\\.";
  options.max_tokens = 60;
  doppler_timings timings = {.size = sizeof(timings)};
  EXPECT_DONE(doppler_scheduler_submit(scheduler, &request, &fork));
  EXPECT_DONE(doppler_stream_finish(fork, &second));
  EXPECT(strstr(doppler_generation_text(second, NULL), ", and that was the end of it.") != NULL);
  EXPECT_DONE(doppler_generation_get_timings(second, &timings));
  EXPECT(timings.forced_tokens > 0 && timings.forced_tokens < timings.generated_tokens);
  doppler_generation_free(second);
  doppler_stream_free(fork);
  options.grammar_kind = (doppler_grammar_kind)9;
  EXPECT_ERROR(doppler_scheduler_submit(scheduler, &request, &fork), DOPPLER_INVALID_INPUT, "grammar_kind is 9");
  options.grammar_kind = DOPPLER_GRAMMAR_NONE;
  options.grammar = NULL;

  EXPECT_DONE(doppler_scheduler_fork(scheduler, streams[0], &options, &fork));
  doppler_stream_cancel(fork);
  EXPECT_DONE(doppler_stream_finish(fork, &second));
  EXPECT(doppler_generation_stop_reason(second) == DOPPLER_STOP_CANCELLED);
  doppler_generation_free(second);
  doppler_generation_free(first);
  doppler_stream_free(fork);
  doppler_stream_free(streams[1]);
  doppler_scheduler_free(scheduler); /* before its stream */
  doppler_stream_free(streams[0]);
}

static void test_model(const char* path, const char* folder) {
  doppler_model* model = NULL;
  doppler_scheduler* scheduler = NULL;
  doppler_model_info info = {.size = sizeof(info)};
  doppler_load_options options;
  char saved[4096];
  int calls = 0;
  snprintf(saved, sizeof(saved), "%s/c_api_test.session", folder);

  doppler_load_options_init(&options, sizeof(options));
  options.ctx_len = 256;
  options.on_progress = stop_at_once;
  options.progress_data = &calls;
  EXPECT_ERROR(doppler_model_load(path, &options, &model), DOPPLER_CANCELLED, "The caller stopped");
  EXPECT(calls == 1 && model == NULL);

  options.on_progress = NULL;
  EXPECT_DONE(doppler_model_load(path, &options, &model));
  if (!model) return;
  EXPECT_DONE(doppler_model_get_info(model, &info));
  EXPECT(info.ctx_len == 256 && info.vocab_size > 0 && info.has_tokenizer && strlen(info.architecture) > 0);
  test_tokens(model);
  test_session(model, saved);
  EXPECT_DONE(doppler_model_get_scheduler(model, &scheduler)); /* of one place */
  doppler_scheduler_free(scheduler);
  doppler_model_free(model);

  options.sequences = 2;
  EXPECT_DONE(doppler_model_load(path, &options, &model));
  if (!model) return;
  test_scheduler(model);
  doppler_model_free(model);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "Usage: c_api_test MODEL.gguf FOLDER\n");
    return 2;
  }
  EXPECT(doppler_c_version() == DOPPLER_C_VERSION);
  EXPECT(strchr(doppler_version(), '.') != NULL);
  test_nulls();
  test_bad_load();
  FILE* file = fopen(argv[1], "rb");
  if (file) {
    fclose(file);
    test_model(argv[1], argv[2]);
  }
  printf("%d checks, %d failed%s\n", checks, failures, file ? "" : "; without a model");
  if (failures != 0) return 1;
  return file ? 0 : 77;
}
