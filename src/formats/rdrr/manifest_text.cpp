// RdrrManifest to the text of manifest.json: one line a shard, an asset, a tensor, so that differences between
// two models can be read.
#include <algorithm>

#include "formats/rdrr/manifest.h"

namespace doppler::formats {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

void add_unknown(Json& object, const Json& unknown) {
  if (!unknown.is_object()) return;
  for (const auto& [key, value] : unknown.items()) object[key] = value;
}

Json place_json(const std::optional<RdrrPlace>& place) {
  if (!place) return Json();
  Json out = {{"asset", place->asset}, {"key", text_or_null(place->key)}};
  add_unknown(out, place->unknown);
  return out;
}

Json quantization_json(const RdrrQuantization& q) {
  Json out = {{"weights", text_or_null(q.weights)},
              {"embeddings", text_or_null(q.embeddings)},
              {"lm_head", text_or_null(q.lm_head)},
              {"experts", text_or_null(q.experts)},
              {"kv_cache", text_or_null(q.kv_cache)}};
  add_unknown(out, q.unknown);
  return out;
}

Json draft_json(const std::optional<RdrrDraft>& draft) {
  if (!draft) return Json();
  Json out = {{"model", draft->model},
              {"model_sha256", draft->model_sha256 ? Json(sha256_hex(*draft->model_sha256)) : Json()}};
  add_unknown(out, draft->unknown);
  return out;
}

Json hints_json(const std::optional<std::vector<RdrrKernelHint>>& hints) {
  if (!hints) return Json();
  Json list = Json::array();
  for (const RdrrKernelHint& hint : *hints) {
    Json row = {{"operation", hint.operation},
                {"variant", hint.variant},
                {"wgsl_sha256", sha256_hex(hint.wgsl_sha256)},
                {"device", hint.device}};
    if (hint.measured) {
      const RdrrMeasuredHint& m = *hint.measured;
      Json measured = {{"shape", m.shape},
                       {"lane", m.lane},
                       {"constants", m.constants},
                       {"seconds", m.seconds},
                       {"table_seconds", m.table_seconds}};
      add_unknown(measured, m.unknown);
      row["measured"] = std::move(measured);
    }
    add_unknown(row, hint.unknown);
    list.push_back(std::move(row));
  }
  return list;
}

Json self_test_json(const std::optional<RdrrSelfTest>& test) {
  if (!test) return Json();
  Json positions = Json::array();
  for (const RdrrSelfTest::Position& at : test->positions) {
    Json row = {{"position", at.position}, {"ids", at.ids}, {"logits", at.logits}};
    add_unknown(row, at.unknown);
    positions.push_back(std::move(row));
  }
  Json out = {{"tokens", test->tokens},
              {"tolerance", test->tolerance},
              {"lane", test->lane},
              {"positions", std::move(positions)}};
  add_unknown(out, test->unknown);
  return out;
}

template <class File>
Json file_json(const File& file) {
  Json out = {{"file", file.file}, {"bytes", file.bytes}, {"sha256", sha256_hex(file.sha256)}};
  add_unknown(out, file.unknown);
  return out;
}

Json tensor_json(const RdrrTensor& tensor, uint64_t shard_bytes) {
  Json out = {{"name", tensor.name},
              {"shape", tensor.shape},
              {"dtype", dtype_info(tensor.type).name},
              {"role", rdrr_role_name(tensor.role)},
              {"layout", rdrr_layout_name(tensor.layout)},
              {"source_index", tensor.source_index}};
  if (tensor.bytes <= shard_bytes - tensor.offset) {
    out["shard"] = tensor.shard;
    out["offset"] = tensor.offset;
    out["bytes"] = tensor.bytes;
  } else {
    Json spans = Json::array();
    uint64_t shard = tensor.shard, offset = tensor.offset;
    for (uint64_t left = tensor.bytes; left != 0; ++shard, offset = 0) {
      const uint64_t bytes = std::min(left, shard_bytes - offset);
      spans.push_back(Json::array({shard, offset, bytes}));
      left -= bytes;
    }
    out["spans"] = std::move(spans);
  }
  add_unknown(out, tensor.unknown);
  return out;
}

class Writer {
 public:
  void member(std::string_view key, const Json& value) { begin(key), out_ += to_text(value); }
  template <class Items, class ToJson>
  void list(std::string_view key, const Items& items, ToJson to_json) {
    begin(key);
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      out_ += i == 0 ? "\n    " : ",\n    ";
      out_ += to_text(to_json(items[i]));
    }
    out_ += items.empty() ? "]" : "\n  ]";
  }
  void begin(std::string_view key) { out_ += (out_.empty() ? "{\n  " : ",\n  ") + to_text(Json(key)) + ": "; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace

std::string rdrr_manifest_body(const RdrrManifest& m) {
  constexpr const char* kSourceNames[] = {"gguf", "huggingface"};
  Writer out;
  out.member("format", "rdrr");
  out.member("version", Json::array({m.major, m.minor}));
  out.member("id", m.id);
  out.member("type", m.type);
  out.member("architecture", m.architecture);
  out.member("quantization", quantization_json(m.quantization));
  out.member("source", kSourceNames[static_cast<size_t>(m.source)]);
  out.member("tokenizer", place_json(m.tokenizer));
  out.member("chat_template", place_json(m.chat_template));
  out.member("generation", m.generation);
  out.member("draft", draft_json(m.draft));
  out.member("kernel_hints", hints_json(m.kernel_hints));
  out.member("self_test", self_test_json(m.self_test));
  if (m.unknown.is_object()) {
    for (const auto& [key, value] : m.unknown.items()) out.member(key, value);
  }
  out.list("assets", m.assets, file_json<RdrrAsset>);
  out.member("shard_bytes", m.shard_bytes);
  out.list("shards", m.shards, file_json<RdrrShard>);
  out.list("tensors", m.tensors,
           [&](const RdrrTensor& tensor) { return tensor_json(tensor, m.shard_bytes); });
  out.member("model_sha256", sha256_hex(m.model_sha256));
  out.begin("manifest_sha256");
  return out.take() + "\"";
}

}  // namespace doppler::formats
