// RDRR, Doppler's own model folder: manifest.json, shard_00000.bin ... with the tensors' bytes, and assets (the
// source's metadata and tokenizer files). This is the manifest as data: what it holds, how it is read with every
// check, how it is written. The format in words: docs/reference/rdrr.md. No file is touched here.
// Read next: rdrr_reader.h (opening a folder), rdrr_writer.h (making one), integrity.h (hashes).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "base/result.h"
#include "base/sha256.h"

namespace doppler::formats {

inline constexpr char kRdrrManifestName[] = "manifest.json";
inline constexpr uint32_t kRdrrMajor = 1, kRdrrMinor = 0;
inline constexpr uint64_t kRdrrAlignment = 256;  // of tensors in their shard, and of the shards' size
inline constexpr uint64_t kRdrrShardBytes = 64ull << 20;
inline constexpr uint64_t kRdrrMaxShardBytes = 1ull << 40;
inline constexpr uint64_t kRdrrMaxManifestBytes = 64ull << 20;  // 2^18 tensors at 200 bytes each
inline constexpr uint64_t kRdrrMaxTensors = 1ull << 18;
inline constexpr uint64_t kRdrrMaxShards = 1ull << 20;
inline constexpr uint64_t kRdrrMaxAssets = 64;
inline constexpr uint64_t kRdrrMaxAssetBytes = 1ull << 30;  // as a GGUF header (gguf.h)
inline constexpr uint64_t kRdrrMaxDims = 8;
inline constexpr uint64_t kRdrrMaxNameBytes = 4096;  // tensor names, ids
inline constexpr uint64_t kRdrrMaxMembers = 1024;    // of any object: the largest real ones have 20
inline constexpr uint64_t kRdrrMaxHints = 4096;
inline constexpr uint64_t kRdrrMaxHintConstant = 1 << 20, kRdrrMaxHintConstants = 64;
inline constexpr uint64_t kRdrrMaxSelfTestTokens = 4096;

// Assets that have a meaning by their name.
inline constexpr char kRdrrGgufMetadata[] =
    "metadata.gguf";  // the source's GGUF header without its tensor table
inline constexpr char kRdrrProjectorMetadata[] = "mmproj.metadata.gguf";  // that of its vision tower's file

enum class RdrrRole : uint8_t { kWeights, kEmbeddings, kLmHead, kExperts, kVector };
const char* rdrr_role_name(RdrrRole role);  // "weights", "embeddings", "lm_head", "experts", "vector"

// The order of the numbers of a matrix [n, k]:
//   flat    row after row without a gap: a block may begin in one row and end in the next
//   row     row after row, each begun at a block of its own; the last block of a row may hold padding (zeros)
//   column  column after column, each begun at a block of its own
// If k is a multiple of the block, flat and row are the same bytes.
enum class RdrrLayout : uint8_t { kFlat, kRow, kColumn };
const char* rdrr_layout_name(RdrrLayout layout);  // "flat", "row", "column"

struct RdrrTensor {
  std::string name;
  std::vector<uint64_t> shape;  // outermost first: [n, k]; empty for a single number
  DType type = DType::kF32;
  RdrrRole role = RdrrRole::kWeights;
  RdrrLayout layout = RdrrLayout::kRow;
  uint64_t source_index = 0;  // place in the source's tensor table: 0 to count - 1, each once
  // Where the bytes begin, and how many there are. Those that do not fit into the shard go on at the beginning
  // of the next ones (written out as "spans" in the file).
  uint32_t shard = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  Json unknown;  // members this version does not know; null: none
};

// Bytes of a tensor by type, shape and layout. Errors: a zero dimension, an overflow, a flat tensor whose count
// is not a multiple of the block.
Result<uint64_t> rdrr_tensor_bytes(const RdrrTensor& tensor);

struct RdrrShard {
  std::string file;  // "shard_00000.bin"
  uint64_t bytes = 0;
  Sha256 sha256{};
  Json unknown;
};
std::string rdrr_shard_name(uint64_t number);

struct RdrrAsset {
  std::string file;  // a plain file name
  uint64_t bytes = 0;
  Sha256 sha256{};
  Json unknown;
};

// The naming and description that the tensors follow: those of a GGUF file (metadata.gguf is an asset), or of a Hugging
// Face folder (config.json is an asset).
enum class RdrrSource : uint8_t { kGguf, kHuggingFace };

// Block types by role, as words ("q4_k", "f16", a mix such as "q4_k_m"); empty: off (null in the file).
struct RdrrQuantization {
  std::string weights, embeddings, lm_head, experts, kv_cache;
  Json unknown;
};

// An asset, and the key in it where the text stands if it is not the whole file.
struct RdrrPlace {
  std::string asset;
  std::string key;  // empty: the whole file
  Json unknown;
};

struct RdrrDraft {
  std::string model;                   // a name, path or address, as `doppler run --draft` takes it
  std::optional<Sha256> model_sha256;  // of an RDRR model; checked if there
  Json unknown;
};

// A measurement by `doppler tune` for one shape in one lane.
struct RdrrMeasuredHint {
  std::string shape, lane;
  std::map<std::string, uint32_t, std::less<>> constants;  // of the variant, that differ from the table's
  // Seconds of a decode step or a row of a prefill chunk: with the hint, and with the table's choice.
  double seconds = 0, table_seconds = 0;
  Json unknown;
};

// This operation ran fastest with this variant, measured with this WGSL on this device.
struct RdrrKernelHint {
  std::string operation, variant;
  Sha256 wgsl_sha256{};
  std::string device;
  std::optional<RdrrMeasuredHint> measured =
      {};  // none: the hint pins the operation's variant for all shapes
  Json unknown;
};

// Logits the model must give again, after prefilling `tokens`: at each position named, the largest few.
struct RdrrSelfTest {
  struct Position {
    uint32_t position = 0;
    std::vector<uint32_t> ids;  // largest logit first
    std::vector<float> logits;
    Json unknown;
  };
  std::vector<uint32_t> tokens;
  std::vector<Position> positions;
  float tolerance = 0;  // largest allowed |difference| of a logit
  std::string lane;     // it was made with and is to be checked with: "exact"
  Json unknown;
};

struct RdrrManifest {
  uint32_t major = kRdrrMajor, minor = kRdrrMinor;
  std::string id;                      // "llama-3.2-1b-instruct"
  std::string type;                    // family: "llama"
  Json architecture = Json::object();  // "n_layers": 16, ... : numbers, strings and booleans, one level
  RdrrQuantization quantization;
  RdrrSource source = RdrrSource::kGguf;
  std::optional<RdrrPlace> tokenizer;
  std::optional<RdrrPlace> chat_template;
  Json generation;  // null, or an object of defaults: "temperature": 0.7, ...
  std::optional<RdrrDraft> draft;
  std::optional<std::vector<RdrrKernelHint>> kernel_hints;
  std::optional<RdrrSelfTest> self_test;
  std::vector<RdrrAsset> assets;
  uint64_t shard_bytes = kRdrrShardBytes;  // of every shard but the last
  std::vector<RdrrShard> shards;
  std::vector<RdrrTensor> tensors;  // in load order, which is also their order in the shards
  Sha256 model_sha256{};            // integrity.h: over the shards' and assets' hashes
  Json unknown;                     // top-level members this version does not know; null: none

  const RdrrAsset* asset(std::string_view file) const;  // null: there is none
};

struct RdrrParsed {
  RdrrManifest manifest;
  std::vector<std::string> unknown;  // where unknown members were: "tensors[3].colour"
};

// Reads and checks everything that can be checked without the other files; hashes are not (integrity.h).
// Memory stays in proportion to the text. `name` is for messages.
Result<RdrrParsed> parse_rdrr_manifest(std::string_view text, std::string_view name);

// Sets every tensor's bytes, shard and offset and the shards' names and sizes, from the tensors' order, types,
// shapes and layouts and shard_bytes. Errors: a tensor without a size, too many shards.
Result<> rdrr_lay_out(RdrrManifest& manifest);
// The same checks that parsing makes, of a manifest that was built.
Result<> check_rdrr_manifest(const RdrrManifest& manifest, std::string_view name);

// The check that the places of tensors rest on.
Result<> check_rdrr_shard_bytes(uint64_t bytes, std::string_view name);

// The text of manifest.json up to the 64 digits of its last member, "manifest_sha256"; integrity.h adds them.
std::string rdrr_manifest_body(const RdrrManifest& manifest);

}  // namespace doppler::formats
