// make_default_model FOLDER OUT.gguf MIX: converts a Hugging Face folder of the llama architecture to GGUF.
// It makes the shipped default model (models/README.md); users need it only to make their own.
#include <cstdio>

#include "formats/convert/llama_to_gguf.h"
#include "formats/file_set_native.h"
#include "formats/file_sink_native.h"

namespace {

using namespace doppler;
using namespace doppler::formats;

Task<Result<uint64_t>> convert(std::unique_ptr<FileSet> files, ConvertOptions options, ByteSink& sink) {
  auto opening = open_checkpoint(std::move(files));
  DP_CO_TRY(const std::unique_ptr<Checkpoint> model, co_await std::move(opening));
  auto converting = convert_llama_to_gguf(*model, options, sink);
  co_return co_await std::move(converting);
}

Result<uint64_t> make(const std::string& folder, const std::string& out, const std::string& mix) {
  DP_TRY(std::unique_ptr<FileSet> files, open_file_set(folder));
  DP_TRY(const std::unique_ptr<FileSink> sink, FileSink::create(out));
  ConvertOptions options;
  options.mix = mix;
  options.name = "Storyteller";
  options.metadata = {
      {"general.description", "A small model of old tales, trained from scratch on public-domain books."}};
  auto task = convert(std::move(files), std::move(options), *sink);
  task.start();
  DP_TRY(const uint64_t bytes, task.take());
  DP_CHECK(sink->commit());
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "Usage: make_default_model FOLDER OUT.gguf MIX\n");
    return 2;
  }
  const auto bytes = make(argv[1], argv[2], argv[3]);
  if (!bytes) {
    std::fprintf(stderr, "%s\n", bytes.error().message().c_str());
    return 1;
  }
  std::printf("%s: %llu bytes\n", argv[2], static_cast<unsigned long long>(*bytes));
  return 0;
}
