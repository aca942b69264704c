#include "cli/convert_adapter.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/folders.h"
#include "cli/common.h"
#include "formats/adapters/read_peft.h"
#include "formats/adapters/write_adapter.h"
#include "formats/file_set_native.h"
#include "formats/file_sink_native.h"

namespace doppler::cli {
namespace {

Result<void> write_gguf(const formats::Adapter& adapter, const formats::ModelConfig& model,
                        const std::string& path) {
  DP_TRY(const std::unique_ptr<formats::FileSink> sink, formats::FileSink::create(path));
  DP_CHECK(formats::write_gguf_adapter(adapter, model, *sink));
  return sink->commit();
}

Result<void> write_peft(const formats::Adapter& adapter, const formats::ModelConfig& model,
                        const std::string& path) {
  DP_TRY(const formats::PeftFiles files, formats::make_peft(adapter, model));
  if (!make_folders(path))
    return fail(ErrorKind::kIo, "Cannot make the folder %s: %s.", path.c_str(), std::strerror(errno));
  const std::span<const uint8_t> config(reinterpret_cast<const uint8_t*>(files.config.data()),
                                        files.config.size());
  DP_CHECK(write_file_atomically(path + "/" + formats::kPeftConfigName, config));
  return write_file_atomically(path + "/" + formats::kPeftModelName, files.model);
}

Result<void> convert(const ConvertAdapterFlags& flags) {
  const std::string& out = flags.words[1];
  if (is_there(out) && !flags.replace) {
    return fail(ErrorKind::kInvalidInput, "%s exists; --replace puts the result in its place.", out.c_str());
  }
  DP_TRY(std::unique_ptr<formats::FileSet> files, formats::open_file_set(flags.words[0]));
  DP_TRY(const formats::Adapter adapter, run_now(formats::open_adapter(std::move(files))));
  DP_TRY(const std::unique_ptr<formats::Checkpoint> base, open_named_checkpoint(flags.base, ""));
  DP_TRY(const formats::ModelConfig model, formats::read_config(*base));
  DP_CHECK(out.ends_with(".gguf") ? write_gguf(adapter, model, out) : write_peft(adapter, model, out));
  std::printf("%s: %zu matrices of rank %u\n", out.c_str(), adapter.tensors.size(), adapter.rank());
  return {};
}

}  // namespace

int convert_adapter(const ConvertAdapterFlags& flags) {
  if (flags.words.size() != 2 || flags.base.empty()) {
    return exit_usage(
        Error(ErrorKind::kInvalidInput,
              "IN is an adapter: OUT (a new .gguf file, or a folder for PEFT's files) and --base MODEL "
              "are needed."));
  }
  const auto converted = convert(flags);
  return converted ? 0 : exit_failed(converted.error());
}

}  // namespace doppler::cli
