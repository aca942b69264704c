#include "cli/model_facts.h"

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/sha256.h"
#include "formats/architectures/config.h"
#include "formats/architectures/tower.h"
#include "formats/file_set_native.h"
#include "formats/projector/projector.h"
#include "openai/formats/formats.h"

namespace doppler::cli {
namespace {

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

int64_t modified_seconds(const std::string& path) {
  const auto facts = facts_of(path);
  return facts ? facts->modified_ns / 1'000'000'000 : 0;
}

// Adds the number of parameters and bytes, the main type and the digest.
void add_tensors(const formats::Checkpoint& checkpoint, const std::string& name, server::ModelFacts* facts) {
  std::map<std::string, uint64_t> types;
  std::string identity = name + "\n" + std::to_string(facts->modified) + "\n";
  for (const formats::TensorInfo& tensor : checkpoint.tensors()) {
    uint64_t count = 1;
    for (const uint64_t size : tensor.shape) count *= size;
    const std::string type = dtype_info(tensor.type).name;
    types[type] += count;
    facts->parameters += count;
    facts->bytes += tensor.bytes;
    identity += tensor.name + " " + type + " " + std::to_string(count) + "\n";
  }
  if (!types.empty()) {
    facts->quantisation =
        upper(std::ranges::max_element(types, {}, [](const auto& item) { return item.second; })->first);
  }
  facts->digest = sha256_hex(sha256(text_bytes(identity)));
}

Result<bool> finds_tower(formats::Checkpoint& checkpoint, const std::string& mmproj) {
  DP_TRY(const auto projector, open_named_projector(checkpoint, mmproj));
  DP_TRY(const auto files, run_now(formats::read_vision_files(checkpoint, projector.get())));
  if (!files) return false;
  DP_TRY(const auto tower, formats::read_tower(*files));
  return tower.has_value();
}

}  // namespace

Result<server::ModelFacts> model_facts(const ModelFlags& flags, const std::string& name) {
  DP_TRY(const auto checkpoint, open_named_checkpoint(flags.model, flags.synthetic));
  server::ModelFacts out;
  out.format = checkpoint->kind() == formats::Checkpoint::Kind::kGguf ? "gguf" : "safetensors";
  DP_TRY(const std::string path, named_model_path(flags.model));
  out.modified = modified_seconds(path);
  add_tensors(*checkpoint, name, &out);
  if (const auto config = formats::read_config(*checkpoint)) {
    out.architecture = config->architecture;
    out.ctx_len = config->ctx_len;
    out.dim = config->hidden_dim;
    out.layers = config->n_layers;
    out.writes_text = !formats::is_embedding_model(*config);
    out.gives_embeddings = !out.writes_text && config->pooling.n_classes == 0;
    DP_TRY(const bool has_tower, finds_tower(*checkpoint, flags.load.mmproj));
    out.reads_images = out.writes_text && has_tower;
  }
  std::string given;
  if (!flags.template_file.empty()) {
    DP_TRY(given, read_text_file(flags.template_file));
  }
  DP_TRY(const engine::ModelTemplates templates,
         run_now(engine::load_templates(*checkpoint, std::move(given))));
  out.chat_template = templates.chat.source;
  const engine::ModelTemplate& with_tools = templates.choose(/*has_tools=*/true, /*has_documents=*/false);
  out.knows_tools = with_tools.parsed && with_tools.parsed->mentions("tools");
  out.reasons = openai::reasoning_format_of(templates.chat.source) != nullptr ||
                (templates.chat.parsed && templates.chat.parsed->mentions("enable_thinking"));
  return out;
}

}  // namespace doppler::cli
