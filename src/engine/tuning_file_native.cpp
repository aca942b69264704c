// tuning_file_native.h: a file of at most kMostBytes, read whole.
#include "engine/tuning_file_native.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/folders.h"
#include "base/log.h"
#include "engine/api_impl.h"

namespace doppler::engine {
namespace {

constexpr uint64_t kMostBytes = 8 << 20;  // some hundred models' shapes

void ignore(const std::string& sentence) { log(LogLevel::kWarning, "%s", sentence.c_str()); }

}  // namespace

std::string tuning_path(const std::string& cache_dir, const kernels::TuningKey& key) {
  return cache_dir + "/tuning/" + kernels::key_digest(key) + ".json";
}

std::shared_ptr<const kernels::TuningTable> load_tuning(const std::string& cache_dir,
                                                        const kernels::TuningKey& key) {
  if (cache_dir.empty()) return nullptr;
  const std::string path = tuning_path(cache_dir, key);
  if (!is_regular_file(path)) return nullptr;
  const auto bytes = file_bytes(path);
  if (!bytes || *bytes > kMostBytes) {
    ignore(format_text("The tuning in %s is not used: it has more than %llu bytes or cannot be read.",
                       path.c_str(), static_cast<unsigned long long>(kMostBytes)));
    return nullptr;
  }
  std::string text(static_cast<size_t>(*bytes), '\0');
  std::FILE* file = open_stdio(path, "rb");
  const size_t read = file ? std::fread(text.data(), 1, text.size(), file) : 0;
  if (file) std::fclose(file);
  text.resize(read);
  auto table = kernels::parse_tuning(text, key, path);
  if (!table) {
    ignore(table.error().sentence() + " doppler tune makes a new one.");
    return nullptr;
  }
  return std::make_shared<const kernels::TuningTable>(std::move(*table));
}

Result<void> save_tuning(const std::string& cache_dir, const kernels::TuningKey& key,
                         const kernels::TuningTable& table) {
  if (cache_dir.empty()) {
    return fail(ErrorKind::kIo,
                "There is no folder to keep the tuning in: neither XDG_CACHE_HOME nor HOME is set.");
  }
  const std::string path = tuning_path(cache_dir, key);
  if (!make_folders(parent_path(path)))
    return fail(ErrorKind::kIo, "Cannot make the folder of %s: %s.", path.c_str(), std::strerror(errno));
  const std::string text = kernels::tuning_text(key, table);
  return write_file_atomically(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

Result<bool> forget_tuning(const std::string& cache_dir, const kernels::TuningKey& key) {
  const std::string path = tuning_path(cache_dir, key);
  const bool gone = !cache_dir.empty() && remove_file(path);
  if (!gone && !cache_dir.empty() && errno != ENOENT)
    return fail(ErrorKind::kIo, "Cannot remove %s: %s.", path.c_str(), std::strerror(errno));
  return gone;
}

}  // namespace doppler::engine
