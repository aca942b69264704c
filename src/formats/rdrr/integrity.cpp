// The comparisons of integrity.h, for every build; making hashes is integrity_native.cpp.
#include "formats/rdrr/integrity.h"

namespace doppler::formats {
namespace {

constexpr std::string_view kTail = "\"\n}\n";
constexpr std::string_view kLastMember = "\"manifest_sha256\": \"";
constexpr size_t kDigits = 64;

}  // namespace

Task<Result<HashCheck>> check_rdrr_manifest_hash(std::string_view text, std::string_view name) {
  const size_t after = kDigits + kTail.size();
  const std::string_view body = text.substr(0, text.size() < after ? 0 : text.size() - after);
  const std::string_view written = text.substr(body.size()).substr(0, kDigits);
  if (!text.ends_with(kTail) || !body.ends_with(kLastMember) || !sha256_from_hex(written)) {
    co_return fail(ErrorKind::kInvalidInput,
                   "%s is damaged or was edited: it does not end with its \"manifest_sha256\".",
                   std::string(name).c_str());
  }
  auto hashing = host_sha256(text_bytes(body));
  const std::optional<Sha256> found = co_await std::move(hashing);
  if (!found) co_return HashCheck::kNotHashed;
  if (sha256_hex(*found) == written) co_return HashCheck::kOk;
  co_return fail(ErrorKind::kInvalidInput, "%s is damaged or was edited: its SHA-256 is %s, but it names %s.",
                 std::string(name).c_str(), sha256_hex(*found).c_str(), std::string(written).c_str());
}

std::vector<uint8_t> rdrr_model_hash_input(const RdrrManifest& manifest) {
  std::vector<uint8_t> all;
  for (const RdrrShard& shard : manifest.shards) {
    all.insert(all.end(), shard.sha256.begin(), shard.sha256.end());
  }
  for (const RdrrAsset& asset : manifest.assets) {
    all.insert(all.end(), asset.file.begin(), asset.file.end());
    all.push_back(0);
    all.insert(all.end(), asset.sha256.begin(), asset.sha256.end());
  }
  return all;
}

Task<Result<HashCheck>> check_rdrr_model_hash(const RdrrManifest& manifest, std::string_view name) {
  const std::vector<uint8_t> input = rdrr_model_hash_input(manifest);
  auto hashing = host_sha256(input);
  const std::optional<Sha256> found = co_await std::move(hashing);
  if (!found) co_return HashCheck::kNotHashed;
  if (*found == manifest.model_sha256) co_return HashCheck::kOk;
  co_return fail(ErrorKind::kInvalidInput,
                 "%s: \"model_sha256\" is %s, but the hashes of its shards and assets make %s.",
                 std::string(name).c_str(), sha256_hex(manifest.model_sha256).c_str(),
                 sha256_hex(*found).c_str());
}

Task<Result<HashCheck>> check_rdrr_bytes(std::span<const uint8_t> bytes, Sha256 expected,
                                         std::string_view name) {
  auto hashing = host_sha256(bytes);
  const std::optional<Sha256> found = co_await std::move(hashing);
  if (!found) co_return HashCheck::kNotHashed;
  DP_CO_CHECK(compare_rdrr_hash(*found, expected, name));
  co_return HashCheck::kOk;
}

Result<> compare_rdrr_hash(const Sha256& found, const Sha256& expected, std::string_view name) {
  if (found == expected) return {};
  return fail(ErrorKind::kInvalidInput, "%s is damaged: its SHA-256 is %s, but the manifest names %s.",
              std::string(name).c_str(), sha256_hex(found).c_str(), sha256_hex(expected).c_str());
}

}  // namespace doppler::formats
