// File layout: u64 key bytes, the key, the value. The name is a hash of the key; the stored key decides.
#include "gpu/blob_cache_native.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>

#include "base/text.h"

namespace doppler::gpu {
namespace {

struct FileCloser {
  void operator()(FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<FILE, FileCloser>;

// FNV-1a, 64 bits.
uint64_t hash_of(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

std::string path_of(const std::string& folder, std::span<const uint8_t> key) {
  return folder + format_text("/%016llx.dawn", static_cast<unsigned long long>(hash_of(key)));
}

// Called twice: without room to learn the size, then with it. 0: not there.
size_t load(size_t key_bytes, const uint8_t* key, size_t value_bytes, uint8_t* value, void* cache_pointer,
            void*) {
  auto& cache = *static_cast<BlobCache*>(cache_pointer);
  const std::string path = path_of(cache.folder, {key, key_bytes});
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) return 0;
  uint64_t stored_key_bytes = 0;
  if (std::fread(&stored_key_bytes, sizeof stored_key_bytes, 1, file.get()) != 1 ||
      stored_key_bytes != key_bytes) {
    return 0;
  }
  std::string stored_key(key_bytes, '\0');
  if (std::fread(stored_key.data(), 1, key_bytes, file.get()) != key_bytes ||
      std::memcmp(stored_key.data(), key, key_bytes) != 0) {
    return 0;
  }
  const long start = std::ftell(file.get());
  if (start < 0 || std::fseek(file.get(), 0, SEEK_END) != 0) return 0;
  const long end = std::ftell(file.get());
  if (end <= start) return 0;
  const auto size = static_cast<size_t>(end - start);
  if (!value || value_bytes < size) return size;
  if (std::fseek(file.get(), start, SEEK_SET) != 0) return 0;
  if (std::fread(value, 1, size, file.get()) != size) return 0;
  ++cache.found;
  return size;
}

// Written beside and renamed, so that a reader never sees half a file.
void store(size_t key_bytes, const uint8_t* key, size_t value_bytes, const uint8_t* value,
           void* cache_pointer, void*) {
  auto& cache = *static_cast<BlobCache*>(cache_pointer);
  ++cache.stored;
  const std::string path = path_of(cache.folder, {key, key_bytes});
  std::string temporary = path + ".XXXXXX";
  const int descriptor = mkstemp(temporary.data());
  if (descriptor < 0) return;
  File file(fdopen(descriptor, "wb"));
  const uint64_t count = key_bytes;
  bool ok = file && std::fwrite(&count, sizeof count, 1, file.get()) == 1 &&
            std::fwrite(key, 1, key_bytes, file.get()) == key_bytes &&
            std::fwrite(value, 1, value_bytes, file.get()) == value_bytes;
  ok = file && std::fclose(file.release()) == 0 && ok;
  if (!ok || std::rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

}  // namespace

DawnCache make_dawn_cache(BlobCache& cache) {
  if (!cache.folder.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(cache.folder, ignored);
  }
  return {.chain = {nullptr, kDawnCacheSType},
          .isolation_key = to_view(""),
          .load = {nullptr, load, &cache, nullptr},
          .store = {nullptr, store, &cache, nullptr}};
}

}  // namespace doppler::gpu
