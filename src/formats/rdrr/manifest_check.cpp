// check_rdrr_manifest(): everything about a manifest that can be wrong without looking at another file.
#include <cmath>
#include <unordered_set>

#include "formats/rdrr/manifest.h"
#include "formats/source.h"

namespace doppler::formats {
namespace {

using Ull = unsigned long long;

class Checker {
 public:
  Checker(const RdrrManifest& manifest, std::string_view name) : m_(manifest), name_(name) {}

  Result<> run() {
    for (auto step : {&Checker::check_head, &Checker::check_assets, &Checker::check_shards,
                      &Checker::check_tensors, &Checker::check_text_side, &Checker::check_extras}) {
      DP_CHECK((this->*step)());
    }
    return {};
  }

 private:
  const char* name() const { return name_.c_str(); }

  Result<> bounded(std::string_view what, std::string_view text, uint64_t least, uint64_t most) {
    if (text.size() >= least && text.size() <= most) return {};
    return fail(ErrorKind::kInvalidInput, "%s: \"%s\" has %zu bytes; %llu to %llu are allowed.", name(),
                std::string(what).c_str(), text.size(), static_cast<Ull>(least), static_cast<Ull>(most));
  }
  Result<> counted(std::string_view what, uint64_t count, uint64_t least, uint64_t most) {
    if (count >= least && count <= most) return {};
    return fail(ErrorKind::kInvalidInput, "%s: \"%s\" has %llu entries; %llu to %llu are allowed.", name(),
                std::string(what).c_str(), static_cast<Ull>(count), static_cast<Ull>(least),
                static_cast<Ull>(most));
  }

  Result<> check_head() {
    DP_CHECK(bounded("id", m_.id, 1, kRdrrMaxNameBytes));
    DP_CHECK(bounded("type", m_.type, 1, kRdrrMaxNameBytes));
    DP_CHECK(counted("architecture", m_.architecture.size(), 0, kRdrrMaxMembers));
    for (const auto& [key, value] : m_.architecture.items()) {
      if (value.is_number() || value.is_boolean() || value.is_null()) continue;
      if (value.is_string() && value.text().size() <= kRdrrMaxNameBytes) continue;
      return fail(ErrorKind::kInvalidInput,
                  "%s: \"architecture.%s\" must be a number, a short string, a boolean or null.", name(),
                  printable(key).c_str());
    }
    const RdrrQuantization& q = m_.quantization;
    for (const std::string* text : {&q.weights, &q.embeddings, &q.lm_head, &q.experts, &q.kv_cache}) {
      DP_CHECK(bounded("quantization", *text, 0, kRdrrMaxNameBytes));
    }
    return {};
  }

  Result<> check_assets() {
    DP_CHECK(counted("assets", m_.assets.size(), 0, kRdrrMaxAssets));
    std::unordered_set<std::string_view> seen;
    for (const RdrrAsset& asset : m_.assets) {
      DP_CHECK(bounded("assets.file", asset.file, 1, 255));
      if (!is_plain_file_name(asset.file) || asset.file == kRdrrManifestName ||
          asset.file.starts_with("shard_")) {
        return fail(ErrorKind::kInvalidInput, "%s: \"%s\" cannot be the name of an asset.", name(),
                    printable(asset.file).c_str());
      }
      if (!seen.insert(asset.file).second) {
        return fail(ErrorKind::kInvalidInput, "%s: asset \"%s\" occurs twice.", name(),
                    printable(asset.file).c_str());
      }
      if (asset.bytes == 0 || asset.bytes > kRdrrMaxAssetBytes) {
        return fail(ErrorKind::kInvalidInput, "%s: asset \"%s\" has %llu bytes; 1 to %llu are allowed.",
                    name(), printable(asset.file).c_str(), static_cast<Ull>(asset.bytes),
                    static_cast<Ull>(kRdrrMaxAssetBytes));
      }
    }
    const char* needed = m_.source == RdrrSource::kGguf ? kRdrrGgufMetadata : "config.json";
    if (!m_.asset(needed)) {
      return fail(ErrorKind::kInvalidInput, "%s: a model from a %s needs the asset \"%s\".", name(),
                  m_.source == RdrrSource::kGguf ? "GGUF file" : "Hugging Face folder", needed);
    }
    return {};
  }

  Result<> check_shards() {
    DP_CHECK(counted("shards", m_.shards.size(), 1, kRdrrMaxShards));
    DP_CHECK(check_rdrr_shard_bytes(m_.shard_bytes, name_));
    for (size_t i = 0; i < m_.shards.size(); ++i) {
      const RdrrShard& shard = m_.shards[i];
      if (shard.file != rdrr_shard_name(i)) {
        return fail(ErrorKind::kInvalidInput, "%s: shard %zu is named \"%s\"; it must be \"%s\".", name(), i,
                    printable(shard.file).c_str(), rdrr_shard_name(i).c_str());
      }
      const bool last = i + 1 == m_.shards.size();
      if (shard.bytes == 0 || shard.bytes > m_.shard_bytes || (!last && shard.bytes != m_.shard_bytes)) {
        return fail(ErrorKind::kInvalidInput,
                    "%s: %s has %llu bytes; every shard but the last has \"shard_bytes\" (%llu), the last at "
                    "most that.",
                    name(), shard.file.c_str(), static_cast<Ull>(shard.bytes),
                    static_cast<Ull>(m_.shard_bytes));
      }
    }
    return {};
  }

  Result<> check_tensors() {
    DP_CHECK(counted("tensors", m_.tensors.size(), 1, kRdrrMaxTensors));
    const uint64_t total = (m_.shards.size() - 1) * m_.shard_bytes + m_.shards.back().bytes;
    std::unordered_set<std::string_view> names;
    std::vector<bool> indices(m_.tensors.size());
    uint64_t end = 0;
    for (const RdrrTensor& tensor : m_.tensors) {
      DP_CHECK(bounded("tensors.name", tensor.name, 1, kRdrrMaxNameBytes));
      const std::string shown = printable(tensor.name);
      if (!names.insert(tensor.name).second) {
        return fail(ErrorKind::kInvalidInput, "%s: tensor \"%s\" occurs twice.", name(), shown.c_str());
      }
      if (tensor.source_index >= indices.size() || indices[tensor.source_index]) {
        return fail(ErrorKind::kInvalidInput,
                    "%s: \"source_index\" of tensor \"%s\" is %llu; the tensors' are 0 to %zu, each once.",
                    name(), shown.c_str(), static_cast<Ull>(tensor.source_index), indices.size() - 1);
      }
      indices[tensor.source_index] = true;
      DP_CHECK_WHILE(check_place(tensor, total, end), "reading %s", name());
    }
    return {};
  }

  // `end` is where the tensor before ends, and then where this one does.
  Result<> check_place(const RdrrTensor& tensor, uint64_t total, uint64_t& end) {
    const std::string shown = printable(tensor.name);
    if (tensor.shape.size() > kRdrrMaxDims) {
      return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has %zu dimensions; at most %llu are allowed.",
                  shown.c_str(), tensor.shape.size(), static_cast<Ull>(kRdrrMaxDims));
    }
    DP_TRY(const uint64_t bytes, rdrr_tensor_bytes(tensor));
    if (bytes != tensor.bytes) {
      return fail(ErrorKind::kInvalidInput,
                  "Tensor \"%s\" is said to have %llu bytes; its type, shape and layout make %llu.",
                  shown.c_str(), static_cast<Ull>(tensor.bytes), static_cast<Ull>(bytes));
    }
    if (tensor.offset % kRdrrAlignment != 0 || tensor.offset >= m_.shard_bytes) {
      return fail(
          ErrorKind::kInvalidInput,
          "Tensor \"%s\" begins at offset %llu of its shard; multiples of %llu below %llu are allowed.",
          shown.c_str(), static_cast<Ull>(tensor.offset), static_cast<Ull>(kRdrrAlignment),
          static_cast<Ull>(m_.shard_bytes));
    }
    const uint64_t begin = tensor.shard * m_.shard_bytes + tensor.offset;  // below 2^32 * 2^40: no overflow
    if (tensor.shard >= m_.shards.size() || begin > total || bytes > total - begin) {
      return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" reaches beyond the last shard.", shown.c_str());
    }
    if (begin < end) {
      return fail(
          ErrorKind::kInvalidInput,
          "Tensor \"%s\" begins before the end of the one listed before it; tensors are listed in the "
          "order of their bytes.",
          shown.c_str());
    }
    end = begin + bytes;
    return {};
  }

  Result<> check_text_side() {
    for (const auto& [what, place] :
         {std::pair{"tokenizer", &m_.tokenizer}, std::pair{"chat_template", &m_.chat_template}}) {
      if (!*place) continue;
      DP_CHECK(bounded(what, (*place)->key, 0, kRdrrMaxNameBytes));
      if (!m_.asset((*place)->asset)) {
        return fail(ErrorKind::kInvalidInput, "%s: \"%s\" is said to be in \"%s\", which is no asset.",
                    name(), what, printable((*place)->asset).c_str());
      }
    }
    return {};
  }

  Result<> check_extras() {
    if (m_.draft) DP_CHECK(bounded("draft.model", m_.draft->model, 1, kRdrrMaxNameBytes));
    if (m_.kernel_hints) {
      DP_CHECK(counted("kernel_hints", m_.kernel_hints->size(), 0, kRdrrMaxHints));
      for (const RdrrKernelHint& hint : *m_.kernel_hints) {
        for (const std::string* text : {&hint.operation, &hint.variant, &hint.device}) {
          DP_CHECK(bounded("kernel_hints", *text, 1, kRdrrMaxNameBytes));
        }
        if (hint.measured) DP_CHECK(check_measured(*hint.measured));
      }
    }
    return m_.self_test ? check_self_test(*m_.self_test) : Result<>();
  }

  Result<> check_measured(const RdrrMeasuredHint& m) {
    for (const std::string* text : {&m.shape, &m.lane}) {
      DP_CHECK(bounded("kernel_hints.measured", *text, 1, kRdrrMaxNameBytes));
    }
    DP_CHECK(counted("kernel_hints.measured.constants", m.constants.size(), 0, kRdrrMaxHintConstants));
    for (const auto& [key, value] : m.constants) {
      DP_CHECK(bounded("kernel_hints.measured.constants", key, 1, kRdrrMaxNameBytes));
    }
    if (std::isfinite(m.seconds) && m.seconds > 0 && std::isfinite(m.table_seconds) && m.table_seconds > 0)
      return {};
    return fail(ErrorKind::kInvalidInput,
                "%s: \"kernel_hints.measured\" needs seconds and table_seconds above 0.", name());
  }

  Result<> check_self_test(const RdrrSelfTest& test) {
    DP_CHECK(counted("self_test.tokens", test.tokens.size(), 1, kRdrrMaxSelfTestTokens));
    DP_CHECK(counted("self_test.positions", test.positions.size(), 1, test.tokens.size()));
    DP_CHECK(bounded("self_test.lane", test.lane, 1, kRdrrMaxNameBytes));
    bool sound = std::isfinite(test.tolerance) && test.tolerance >= 0;
    for (const RdrrSelfTest::Position& at : test.positions) {
      DP_CHECK(counted("self_test.positions.ids", at.ids.size(), 1, kRdrrMaxSelfTestTokens));
      sound = sound && at.position < test.tokens.size() && at.ids.size() == at.logits.size();
      for (const float logit : at.logits) sound = sound && std::isfinite(logit);
    }
    if (sound) return {};
    return fail(ErrorKind::kInvalidInput,
                "%s: \"self_test\" needs positions within its tokens, a finite logit for each id and a "
                "tolerance of 0 or more.",
                name());
  }

  const RdrrManifest& m_;
  const std::string name_;
};

}  // namespace

Result<> check_rdrr_shard_bytes(uint64_t bytes, std::string_view name) {
  if (bytes != 0 && bytes % kRdrrAlignment == 0 && bytes <= kRdrrMaxShardBytes) return {};
  return fail(ErrorKind::kInvalidInput,
              "%s: \"shard_bytes\" is %llu; multiples of %llu up to %llu are allowed.",
              std::string(name).c_str(), static_cast<Ull>(bytes), static_cast<Ull>(kRdrrAlignment),
              static_cast<Ull>(kRdrrMaxShardBytes));
}

Result<> check_rdrr_manifest(const RdrrManifest& manifest, std::string_view name) {
  return Checker(manifest, name).run();
}

}  // namespace doppler::formats
