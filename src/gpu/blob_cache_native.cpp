// File layout: the 8 bytes "DOPBLOB2", u64 key bytes, the key, SHA-256 of key and value, the value. The name is a hash
// of the key; the stored key decides. Dawn trusts what it gets, so a damaged file counts as missing.
#include "gpu/blob_cache_native.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/folders.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"

namespace doppler::gpu {
namespace {

constexpr char kMagic[8] = {'D', 'O', 'P', 'B', 'L', 'O', 'B', '2'};

Sha256 digest_of(std::span<const uint8_t> key, std::span<const uint8_t> value) {
  Sha256Hasher hasher;
  hasher.update(key);
  hasher.update(value);
  return hasher.finish();
}

// FNV-1a, 64 bits.
uint64_t hash_of(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

std::string path_of(const std::string& folder, std::span<const uint8_t> key) {
  return folder + format_text("/%016llx.dawn", static_cast<unsigned long long>(hash_of(key)));
}

std::optional<std::vector<uint8_t>> read_file(const std::string& path) {
  const OpenFile file = OpenFile::open(path);
  const auto facts = file ? file.facts() : std::nullopt;
  if (!facts) return {};
  std::vector<uint8_t> bytes(static_cast<size_t>(facts->bytes));
  if (file.read_at(bytes, 0) != bytes.size()) return {};
  return bytes;
}

// The value in the file's bytes. Empty: it is of another key, of another version, or damaged.
std::span<const uint8_t> value_of(std::span<const uint8_t> bytes, std::span<const uint8_t> key,
                                  bool& is_damaged) {
  uint64_t key_bytes = 0;
  constexpr size_t kHead = sizeof kMagic + sizeof key_bytes;
  is_damaged = true;
  if (bytes.size() < kHead + key.size() + sizeof(Sha256)) return {};
  is_damaged = false;
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return {};
  std::memcpy(&key_bytes, bytes.data() + sizeof kMagic, sizeof key_bytes);
  const std::span<const uint8_t> stored_key = bytes.subspan(kHead, key.size());
  if (key_bytes != key.size() || !std::ranges::equal(stored_key, key)) return {};
  const std::span<const uint8_t> digest = bytes.subspan(kHead + key.size(), sizeof(Sha256));
  const std::span<const uint8_t> value = bytes.subspan(kHead + key.size() + sizeof(Sha256));
  is_damaged = !std::ranges::equal(digest, digest_of(key, value));
  return is_damaged ? std::span<const uint8_t>() : value;
}

// Called twice: without room to learn the size, then with it. 0: not there.
size_t load(size_t key_bytes, const uint8_t* key, size_t value_bytes, uint8_t* value, void* cache_pointer,
            void*) {
  auto& cache = *static_cast<BlobCache*>(cache_pointer);
  const std::string path = path_of(cache.folder, {key, key_bytes});
  const auto bytes = read_file(path);
  if (!bytes) return 0;
  bool is_damaged = false;
  const std::span<const uint8_t> found = value_of(*bytes, {key, key_bytes}, is_damaged);
  if (is_damaged) {
    log(LogLevel::kInfo, "%s is damaged; its kernel is compiled again.", path.c_str());
    remove_file(path);
  }
  if (found.empty() || !value || value_bytes < found.size()) return found.size();
  std::ranges::copy(found, value);
  ++cache.found;
  return found.size();
}

// Written beside and renamed, so that a reader never sees half a file.
void store(size_t key_bytes, const uint8_t* key, size_t value_bytes, const uint8_t* value,
           void* cache_pointer, void*) {
  auto& cache = *static_cast<BlobCache*>(cache_pointer);
  ++cache.stored;
  const std::string path = path_of(cache.folder, {key, key_bytes});
  std::string temporary;
  OpenFile file = OpenFile::make_beside(path, temporary);
  if (!file) return;
  const uint64_t count = key_bytes;
  const Sha256 digest = digest_of({key, key_bytes}, {value, value_bytes});
  std::vector<uint8_t> head(sizeof kMagic + sizeof count);
  std::memcpy(head.data(), kMagic, sizeof kMagic);
  std::memcpy(head.data() + sizeof kMagic, &count, sizeof count);
  const bool is_written = file.write(head) && file.write({key, key_bytes}) && file.write(digest) &&
                          file.write({value, value_bytes});
  const bool is_whole = file.close() && is_written;
  if (!is_whole || !rename_path(temporary, path)) remove_file(temporary);
}

}  // namespace

DawnCache make_dawn_cache(BlobCache& cache) {
  if (!cache.folder.empty()) make_folders(cache.folder);
  return {.chain = {nullptr, kDawnCacheSType},
          .isolation_key = to_view(""),
          .load = {nullptr, load, &cache, nullptr},
          .store = {nullptr, store, &cache, nullptr}};
}

}  // namespace doppler::gpu
