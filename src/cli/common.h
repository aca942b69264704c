// What several verbs share: the flags that choose model, device and lane, error exits, progress on stderr.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/args.h"
#include "doppler/doppler.h"
#include "engine/api_impl.h"

namespace doppler::cli {

// --model, --webgpu, --device, --lane, --kernel, --kv, --ctx, --chunk, --synthetic, --log-level.
struct ModelFlags {
  std::string model;
  std::string synthetic;  // SHAPE[:QUANT] instead of a file
  std::string template_file;
  LoadOptions load;
};
void add_model_flags(Args& args, ModelFlags& flags, bool allow_synthetic);
void add_log_flag(Args& args);

// The model that was named, or the one that Doppler ships. Shows progress on a terminal.
Result<Model> load_named_model(const ModelFlags& flags, LoadExtras extras = {});
// $DOPPLER_MODEL, or models/storyteller.gguf of the installation.
Result<std::string> default_model_path();

// Prints the error to stderr. 2 for wrong usage, otherwise 1.
int exit_usage(const Error& error);
int exit_failed(const Error& error);

// Comma-separated ids: "1,2,3".
Result<std::vector<int32_t>> parse_tokens(std::string_view text);
Result<std::string> read_text_file(const std::string& path);  // "-": standard input
bool stderr_is_terminal();

}  // namespace doppler::cli
