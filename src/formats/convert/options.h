// The options of a conversion, as `doppler convert` takes them. Read next: conversion.h (the plan that follows from
// them), convert_native.h (doing it).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "formats/rdrr/manifest.h"

namespace doppler::formats {

enum class OutputKind : uint8_t { kGguf, kRdrr };

inline constexpr char kKeepTypes[] = "keep";  // for `quantize`: every tensor keeps its type

struct ConvertOptions {
  OutputKind to = OutputKind::kGguf;

  // "keep" or a mix of quant/mix.h. The types below, words such as "q8_0" or "keep", go before it; empty: as the mix
  // says. `tensors`: extended regular expressions that are searched in the output's tensor names, and a type each;
  // they go before all others, and the last one that matches counts.
  std::string quantize = kKeepTypes;
  std::string embeddings, lm_head, experts;
  std::vector<std::pair<std::string, std::string>> tensors;

  std::string name;  // general.name or the manifest's id; empty: the source's
  std::vector<std::pair<std::string, std::string>> metadata;  // GGUF from Hugging Face: further text fields

  // RDRR only.
  std::optional<RdrrLayout> layout;  // of quantised matrices; empty: row, and types that fit the column count
  bool fuse_gate_up = false, fuse_qkv = false;
  uint64_t shard_bytes = kRdrrShardBytes;
  std::string draft;  // RdrrDraft::model; empty: none
  Json architecture = Json::object();
  std::string family;  // RdrrManifest::type; empty: the source's architecture

  std::string importance_file;  // empty: none
  uint32_t threads = 0;         // 0: one a processor
  bool whole_tensors = false;   // pieces are whole tensors instead of some rows
  bool replace = false;         // an output that exists is replaced, at the end
};

// The checks that need no model. Errors: an unknown type or mix (with those that exist), a bad regular expression,
// options that only RDRR has a place for.
Result<> check_options(const ConvertOptions& options);

}  // namespace doppler::formats
