// make_default_model FOLDER OUT.gguf MIX: the Hugging Face folder of the shipped default model to GGUF, with its name
// and description (models/README.md). The same as `doppler convert --quantize MIX --name ... --meta ...`.
#include <cstdio>

#include "formats/convert/convert_native.h"
#include "formats/file_set_native.h"

namespace {

using namespace doppler;
using namespace doppler::formats;

Result<ConvertReport> make(const std::string& folder, const std::string& out, const std::string& mix) {
  DP_TRY(std::unique_ptr<FileSet> files, open_file_set(folder));
  auto opening = open_checkpoint(std::move(files));
  opening.start();
  DP_TRY(const std::unique_ptr<Checkpoint> model, opening.take());
  ConvertOptions options;
  options.quantize = mix;
  options.name = "Storyteller";
  options.metadata = {
      {"general.description", "A small model of old tales, trained from scratch on public-domain books."}};
  return convert_model(*model, out, options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "Usage: make_default_model FOLDER OUT.gguf MIX\n");
    return 2;
  }
  const auto report = make(argv[1], argv[2], argv[3]);
  if (!report) {
    std::fprintf(stderr, "%s\n", report.error().message().c_str());
    return 1;
  }
  std::printf("%s: %llu bytes of tensors\n", argv[2], static_cast<unsigned long long>(report->output_bytes));
  return 0;
}
