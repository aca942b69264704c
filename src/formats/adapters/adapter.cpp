// Chooses the reader of a file; see adapter.h.
#include "formats/adapters/adapter.h"

#include <algorithm>

#include "formats/adapters/read_gguf_adapter.h"
#include "formats/adapters/read_peft.h"
#include "formats/file_headers.h"

namespace doppler::formats {

uint32_t Adapter::rank() const {
  uint32_t most = 0;
  for (const AdaptedTensor& tensor : tensors) most = std::max(most, tensor.rank);
  return most;
}

uint64_t Adapter::numbers() const {
  uint64_t count = 0;
  for (const AdaptedTensor& t : tensors) {
    count += t.a.size() + t.b.size() + t.bias.size() + t.magnitude.size();
  }
  for (const ReplacedTensor& tensor : replaced) count += tensor.values.size();
  return count;
}

Task<Result<bool>> is_adapter(FileSet& files) {
  const std::string main = files.main_file();
  if (main == kPeftConfigName || main == kPeftModelName) co_return true;
  auto opening = files.open(main.empty() ? kPeftConfigName : main);
  DP_CO_TRY(const std::unique_ptr<ByteSource> source, co_await std::move(opening));
  if (main.empty() || !source) co_return source != nullptr;
  auto looking = look_at(*source);
  const Result<FileLook> look = co_await std::move(looking);
  if (!look || *look != FileLook::kGguf) co_return false;
  auto reading = read_gguf(*source);
  DP_CO_TRY(const GgufFile file, co_await std::move(reading));
  DP_CO_TRY(const auto type, file.get_string("general.type"));
  co_return type.value_or("model") == "adapter";
}

Task<Result<Adapter>> open_adapter(std::unique_ptr<FileSet> files) {
  const std::string main = files->main_file();
  const bool is_peft = main.empty() || main == kPeftConfigName || main == kPeftModelName;
  if (is_peft) {
    auto reading = read_peft(*files);
    co_return co_await std::move(reading);
  }
  auto opening = files->open(main);
  DP_CO_TRY(const std::unique_ptr<ByteSource> source, co_await std::move(opening));
  if (!source) co_return fail(ErrorKind::kIo, "There is no file %s.", files->root().c_str());
  auto looking = look_at(*source);
  DP_CO_TRY(const FileLook look, co_await std::move(looking));
  if (look != FileLook::kGguf) {
    co_return fail(ErrorKind::kInvalidInput,
                   "%s is no adapter: name a folder with %s and %s, or a GGUF file of an adapter.",
                   files->root().c_str(), kPeftConfigName, kPeftModelName);
  }
  auto reading = read_gguf_adapter(*source);
  DP_CO_TRY(Adapter adapter, co_await std::move(reading));
  adapter.name = files->root();
  co_return adapter;
}

}  // namespace doppler::formats
