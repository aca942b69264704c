// Fuzz target: any text as an RDRR manifest. A manifest that is read must be laid out inside its shards and come back
// the same when it is written and read again.
#include "base/fuzz_check.h"
#include "formats/rdrr/integrity.h"
#include "formats/rdrr/unpacked_source.h"

using namespace doppler;
using namespace doppler::formats;

namespace {

void use(const RdrrManifest& manifest) {
  const uint64_t total = (manifest.shards.size() - 1) * manifest.shard_bytes + manifest.shards.back().bytes;
  uint64_t rows = 0;
  for (const RdrrTensor& tensor : manifest.tensors) {
    const uint64_t begin = tensor.shard * manifest.shard_bytes + tensor.offset;
    if (begin > total || tensor.bytes > total - begin) std::abort();
    rows += is_row_major(tensor) ? 1 : 0;
  }
  if (rows > manifest.tensors.size()) std::abort();
  for (const RdrrAsset& asset : manifest.assets) {
    if (asset.file.find('/') != asset.file.npos || manifest.asset(asset.file) != &asset) std::abort();
  }
}

void write_and_read_again(RdrrManifest manifest) {
  const std::string text = rdrr_manifest_text(manifest);
  const auto again = parse_rdrr_manifest(text, "fuzz");
  if (!again) std::abort();
  RdrrManifest copy = again->manifest;
  if (rdrr_manifest_text(copy) != text) std::abort();
  auto checking = check_rdrr_manifest_hash(text, "fuzz");
  checking.start();
  if (!checking.take()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto parsed = parse_rdrr_manifest(text, "fuzz");
  if (!parsed) {
    check_sentence(parsed.error());
    return 0;
  }
  use(parsed->manifest);
  write_and_read_again(std::move(parsed->manifest));
  return 0;
}
