// The hashes of an RDRR folder. Every byte of the folder is under one: shards and assets under their entries' SHA-256,
// the manifest under its own last member, "manifest_sha256", which is over all bytes of manifest.json before its 64
// digits; after them only `"\n}\n` may follow. "model_sha256" names the content: SHA-256 over the digests (32 bytes
// each) of all shards in order, then over file name, NUL and digest of each asset in order. Read next:
// folder_check_native.h (a whole folder), shard_gate.h (while loading).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/task.h"
#include "formats/rdrr/manifest.h"

namespace doppler::formats {

// kNotHashed: this host cannot (base/sha256.h), so nothing was compared. An error names the file by `name`.
enum class HashCheck : uint8_t { kOk, kNotHashed };
Task<Result<HashCheck>> check_rdrr_manifest_hash(std::string_view text, std::string_view name);
Task<Result<HashCheck>> check_rdrr_model_hash(const RdrrManifest& manifest, std::string_view name);
Task<Result<HashCheck>> check_rdrr_bytes(std::span<const uint8_t> bytes, Sha256 expected,
                                         std::string_view name);
// The sentence for a file whose hash is another.
Result<> compare_rdrr_hash(const Sha256& found, const Sha256& expected, std::string_view name);
// The bytes that model_sha256 is the hash of.
std::vector<uint8_t> rdrr_model_hash_input(const RdrrManifest& manifest);

// Native builds only (integrity_native.cpp).
Sha256 rdrr_model_sha256(const RdrrManifest& manifest);
// The whole manifest.json, with its model_sha256 set anew and its manifest_sha256.
std::string rdrr_manifest_text(RdrrManifest& manifest);

}  // namespace doppler::formats
