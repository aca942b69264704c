// All of Doppler's API that a small program needs: loads a model, tells a story while it is generated, then
// pulls a few more pieces by hand. Build it with the CMakeLists.txt beside it; run: story MODEL.gguf
// [OPENING]
#include <doppler/doppler.h>

#include <cstdio>
#include <string>

static int report(const doppler::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 2) return report({doppler::ErrorKind::kInvalidInput, "Usage: story MODEL.gguf [OPENING]"});
  const std::string opening = argc > 2 ? argv[2] : "Once upon a time";

  auto model = doppler::Model::load(argv[1], {.ctx_len = 512});
  if (!model) return report(model.error());
  doppler::Session session = model->new_session();

  doppler::GenerateOptions options;
  options.sampling.temperature = 0;  // greedy: the same story every time
  options.max_tokens = 32;
  std::printf("%s", opening.c_str());
  const auto story = session.generate(opening, options, [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return std::fflush(stdout) == 0;  // false would end the generation
  });
  if (!story) return report(story.error());

  options.max_tokens = 8;  // the session remembers its text: an empty prompt goes on
  if (auto started = session.start(" And then", options); !started) return report(started.error());
  std::printf(" And then");
  for (auto piece = session.next(); piece && *piece; piece = session.next())
    std::printf("%s", (*piece)->c_str());
  const auto rest = session.finish();
  if (!rest) return report(rest.error());
  std::printf("\n%u + %u tokens on %s, %.1f tok/s\n", story->timings.generated_tokens,
              rest->timings.generated_tokens, model->info().adapter.c_str(), story->timings.decode_rate());
}
