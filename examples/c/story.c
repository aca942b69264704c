/* Doppler from C: loads a model and tells a story as it is generated. Build: see CMakeLists.txt, or
 *   cc -o story story.c $(pkg-config --cflags --libs doppler)
 * Run: story MODEL.gguf [OPENING] */
#include <doppler/doppler_c.h>
#include <stdio.h>

static int report(doppler_error* error) {
  fprintf(stderr, "%s\n", doppler_error_message(error));
  doppler_error_free(error);
  return 1;
}

static bool print(void* data, const char* text, size_t length) {
  (void)data;
  fwrite(text, 1, length, stdout);
  return fflush(stdout) == 0; /* false would end the generation */
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "Usage: story MODEL.gguf [OPENING]\n");
    return 1;
  }
  const char* opening = argc > 2 ? argv[2] : "Once upon a time";

  doppler_load_options load;
  doppler_load_options_init(&load, sizeof(load));
  load.ctx_len = 512;
  doppler_model* model = NULL;
  doppler_error* error = doppler_model_load(argv[1], &load, &model);

  doppler_session* session = NULL;
  if (!error) error = doppler_model_new_session(model, &session);

  doppler_generate_options options;
  doppler_generate_options_init(&options, sizeof(options));
  options.temperature = 0; /* greedy: the same story every time */
  options.max_tokens = 32;
  doppler_generation* story = NULL;
  if (!error) {
    printf("%s", opening);
    error = doppler_session_generate(session, opening, &options, print, NULL, &story);
  }

  doppler_timings timings = {.size = sizeof(timings)};
  doppler_model_info info = {.size = sizeof(info)};
  if (!error) error = doppler_generation_get_timings(story, &timings);
  if (!error) error = doppler_model_get_info(model, &info);
  if (!error) {
    printf("\n%u tokens on %s, stopped by %s\n", timings.generated_tokens, info.adapter,
           doppler_stop_reason_name(doppler_generation_stop_reason(story)));
  }
  doppler_generation_free(story);
  doppler_session_free(session);
  doppler_model_free(model);
  return error ? report(error) : 0;
}
