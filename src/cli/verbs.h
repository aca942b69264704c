// The verbs of the program; main.cpp has their table. Each gets the arguments after its name and returns the exit
// code: 0 done, 1 failed, 2 used wrongly (common.h, exit_usage()).
#pragma once

#include <span>
#include <string>

namespace doppler::cli {

int run_verb(std::span<const std::string> arguments);
int batch_verb(std::span<const std::string> arguments);
int embed_verb(std::span<const std::string> arguments);
int rerank_verb(std::span<const std::string> arguments);
int serve_verb(std::span<const std::string> arguments);
int convert_verb(std::span<const std::string> arguments);
int devices_verb(std::span<const std::string> arguments);
int models_verb(std::span<const std::string> arguments);
int inspect_verb(std::span<const std::string> arguments);
int tokenize_verb(std::span<const std::string> arguments);
int detokenize_verb(std::span<const std::string> arguments);
int logits_verb(std::span<const std::string> arguments);
int perplexity_verb(std::span<const std::string> arguments);
int graph_verb(std::span<const std::string> arguments);
int kernels_verb(std::span<const std::string> arguments);
int synth_verb(std::span<const std::string> arguments);
int bench_verb(std::span<const std::string> arguments);
int tune_verb(std::span<const std::string> arguments);
int squeeze_verb(std::span<const std::string> arguments);
int compare_verb(std::span<const std::string> arguments);
int profile_verb(std::span<const std::string> arguments);
int pull_verb(std::span<const std::string> arguments);
int list_verb(std::span<const std::string> arguments);
int show_verb(std::span<const std::string> arguments);
int rm_verb(std::span<const std::string> arguments);
int cp_verb(std::span<const std::string> arguments);
int serve_models_verb(std::span<const std::string> arguments);
int peers_verb(std::span<const std::string> arguments);
int share_verb(std::span<const std::string> arguments);
int web_verb(std::span<const std::string> arguments);
int verify_verb(std::span<const std::string> arguments);

}  // namespace doppler::cli
