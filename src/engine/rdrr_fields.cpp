#include "engine/rdrr_fields.h"

#include "base/json.h"

namespace doppler::engine {

Json rdrr_architecture(const formats::ModelConfig& config) {
  return {{"n_layers", config.n_layers},
          {"n_heads", config.n_heads},
          {"n_kv_heads", config.n_kv_heads},
          {"head_dim", config.head_dim},
          {"hidden_dim", config.hidden_dim},
          {"ffn_dim", config.ffn_dim},
          {"vocab_size", config.vocab_size},
          {"ctx_len", config.ctx_len},
          {"window", config.sliding_window},
          {"rope_theta", config.rope.theta},
          {"tied_embeddings", config.tied_embeddings}};
}

Result<void> check_rdrr_architecture(const Json& architecture, const formats::ModelConfig& config) {
  const Json found = rdrr_architecture(config);
  for (const auto& [key, value] : architecture.items()) {
    const Json* const here = find(found, key);
    if (!here || *here == value) continue;  // a member of its own is the converter's to add
    return fail(ErrorKind::kInvalidInput, "The manifest's \"architecture.%s\" is %s, but the model's is %s.",
                printable(key).c_str(), printable(to_text(value)).c_str(), to_text(*here).c_str());
  }
  return {};
}

}  // namespace doppler::engine
