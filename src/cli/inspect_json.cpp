// The JSON form of an inspection (inspection.h).
#include "base/json.h"
#include "cli/inspection.h"
#include "formats/rdrr/manifest.h"

namespace doppler::cli {
namespace {

Json scalar_json(const formats::GgufValue& value, uint64_t i) {
  if (const auto integer = value.integer(i)) return *integer;
  if (const auto boolean = value.boolean(i)) return *boolean;
  if (const auto text = value.string(i)) return std::string(*text);
  if (const auto number = value.number(i)) return *number;
  return nullptr;
}

// Arrays of more than kShownElements become {count, first}.
Json value_json(const formats::GgufValue& value) {
  if (!value.is_array()) return scalar_json(value, 0);
  Json first = Json::array();
  for (uint64_t i = 0; i < std::min(value.count(), kShownElements); ++i)
    first.push_back(scalar_json(value, i));
  if (value.count() <= kShownElements) return first;
  return {{"count", value.count()}, {"first", std::move(first)}};
}

Json metadata_json(const formats::Checkpoint& checkpoint) {
  const formats::GgufFile* gguf = checkpoint.gguf();
  if (!gguf) return checkpoint.config();
  // Appended, since operator[] looks through all members and a hostile file may have a million; keys are
  // unique.
  Json::Object members;
  for (const auto& entry : gguf->metadata())
    members.push_back({std::string(entry.key), value_json(entry.value)});
  return members;
}

Json config_json(const formats::ModelConfig& c) {
  Json out = {{"family", c.family},
              {"architecture", c.architecture},
              {"name", c.name},
              {"synthetic", c.synthetic},
              {"layers", c.n_layers},
              {"next_layers", c.next_layers},
              {"heads", c.n_heads},
              {"kv_heads", c.n_kv_heads},
              {"head_dim", c.head_dim},
              {"hidden_dim", c.hidden_dim},
              {"ffn_dim", c.ffn_dim},
              {"vocab_size", c.vocab_size},
              {"ctx_len", c.ctx_len},
              {"sliding_window", c.sliding_window},
              {"tied_embeddings", c.tied_embeddings},
              {"norm_eps", c.norm_eps}};
  out["rope"] = {{"theta", c.rope.theta},
                 {"rotary_dim", c.rope.rotary_dim},
                 {"pairing", rope_pairing_name(c.rope.pairing)},
                 {"scaling", rope_scaling_name(c.rope.scaling)},
                 {"factor", c.rope.factor}};
  return out;
}

Json tokenizer_json(const engine::TextModel& text) {
  if (!text.tokenizer) return {{"problem", text.tokenizer_problem}};
  Json special = Json::object();
  for (const auto& [name, id] : special_tokens(*text.tokenizer)) {
    special[name] = {{"id", id}, {"text", std::string(text.tokenizer->token_text(id))}};
  }
  return {{"kind", tokenizer::vocab_kind_name(text.tokenizer->kind())},
          {"vocab_size", text.tokenizer->vocab_size()},
          {"adds_bos", text.tokenizer->adds_bos()},
          {"special", std::move(special)},
          {"stop_tokens", text.stop_tokens}};
}

Json share_json(const TypeShare& share) {
  return {{"tensors", share.tensors}, {"parameters", share.parameters}, {"bytes", share.bytes}};
}

}  // namespace

Json inspection_json(const Inspection& found) {
  const formats::Checkpoint& checkpoint = *found.checkpoint;
  Json out = {{"file", checkpoint.name()}, {"kind", checkpoint.gguf() ? "gguf" : "huggingface"}};
  out["runs"] = found.config.has_value();
  if (found.config) {
    out["config"] = config_json(*found.config);
    out["memory"] = {{"ctx_len", found.ctx_len},
                     {"kv", found.kv},
                     {"weight_bytes", found.memory.weight_bytes},
                     {"cache_bytes", found.memory.cache_bytes},
                     {"scratch_bytes", found.memory.scratch_bytes},
                     {"total_bytes", found.memory.total()}};
  } else {
    out["problem"] = found.config.error().message();
  }
  out["total"] = share_json(found.total);
  if (checkpoint.rdrr() && checkpoint.rdrr()->draft) out["draft"] = checkpoint.rdrr()->draft->model;
  out["types"] = Json::object();
  for (const auto& [name, share] : found.types) out["types"][name] = share_json(share);
  out["tokenizer"] = tokenizer_json(found.text);
  out["chat_template"] =
      found.text.templates.chat.source.empty() ? Json() : Json(found.text.templates.chat.source);
  if (!found.text.templates.chat.problem.empty())
    out["chat_template_problem"] = found.text.templates.chat.problem;
  out["metadata"] = metadata_json(checkpoint);
  Json tensors = Json::array();
  for (const formats::TensorInfo& tensor : checkpoint.tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"type", dtype_info(tensor.type).name},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes}});
  }
  out["tensors"] = std::move(tensors);
  return out;
}

}  // namespace doppler::cli
