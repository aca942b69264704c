// Shared by several verbs: the flags that choose model, device and lane, error exits, progress on stderr.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/args.h"
#include "cli/presets.h"
#include "doppler/doppler.h"
#include "engine/api_impl.h"

namespace doppler::cli {

// --model, --webgpu, --device, --lane, --kernel, --kv, --ctx, --no-verify, --chunk, --synthetic, --trace, --log-level,
// --preset.
struct ModelFlags {
  std::string model;
  std::string synthetic;  // SHAPE[:QUANT] instead of a file
  std::string template_file;
  bool no_tuning = false;
  bool no_verify = false;
  bool takes_names = false;    // --lora NAME=FILE: adapters may have names
  bool takes_devices = false;  // --device 0,1: something dispatches requests over several
  LoadOptions load;
  PresetUse preset;
};
void add_model_flags(Args& args, ModelFlags& flags, bool allow_synthetic);
void add_load_flags(Args& args, ModelFlags& flags);                    // those that do not name the model
void add_kv_flag(Args& args, std::string_view help, std::string* kv);  // --kv: f16, f32 or q8_0
void add_pan_and_scan_flag(Args& args, LoadOptions& load);             // of commands that read pictures
void add_log_flag(Args& args);
// user_folder(UserFolder::kCache): compiled kernels, tuning.
std::string user_cache_dir();
// Writes what --trace recorded, if it was given; `code` is the verb's exit code, 1 if the file cannot be written.
int finish_trace(int code);

// The model that was named, or the one that Doppler ships. Shows progress on a terminal.
Result<Model> load_named_model(const ModelFlags& flags, LoadExtras extras = {});
// The same, which tells only `progress`.
Result<Model> load_quietly(const ModelFlags& flags, const ProgressCallback& progress, LoadExtras extras = {});
// The path of the named model: `model` itself if such a path exists, else the folder of the stored model of that name,
// else the text itself (opening it then fails with a sentence). Empty: the default model. Error: the model's
// download is not finished.
Result<std::string> named_model_path(const std::string& model);
// The files of --model, of --synthetic or of the default model: at most one of the two may be given.
Result<std::unique_ptr<formats::FileSet>> named_files(const std::string& model, const std::string& synthetic);
// The same, opened: headers and tables, no weights and no GPU.
Result<std::unique_ptr<formats::Checkpoint>> open_named_checkpoint(const std::string& model,
                                                                   const std::string& synthetic);
// The file of the model's vision tower: --mmproj, or the one beside the model. Null: the model has none.
Result<std::unique_ptr<formats::Checkpoint>> open_named_projector(formats::Checkpoint& model,
                                                                  const std::string& mmproj);
// The tokenizer of the named model, without a GPU. Error: it has none that can be used.
Result<std::shared_ptr<const tokenizer::Tokenizer>> load_named_tokenizer(const std::string& model);
// $DOPPLER_MODEL, or models/storyteller.gguf of the installation.
Result<std::string> default_model_path();

// Prints the error to stderr. exit_usage(): 2, for a command line that is wrong whatever the files hold, or 1 if a
// flag's file cannot be read. exit_failed(): 1.
int exit_usage(const Error& error);
int exit_failed(const Error& error);

// Drives a task that waits for files only: natively such a task never waits.
template <class T>
T run_now(Task<T> task) {
  task.start();
  return task.take();
}

// Prints --help on request, or the parse error, and gives the exit code that the verb then ends with.
std::optional<int> parse_or_exit(Args& args, std::span<const std::string> arguments);

// Comma-separated ids: "1,2,3".
Result<std::vector<int32_t>> parse_tokens(std::string_view text);
Result<std::string> read_text_file(const std::string& path);  // "-": standard input
bool stderr_is_terminal();

}  // namespace doppler::cli
