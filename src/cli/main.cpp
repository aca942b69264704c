// The doppler program: finds the verb and hands it its arguments.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/text.h"
#include "cli/common.h"
#include "cli/verbs.h"
#include "gpu/guards_native.h"

namespace doppler::cli {
namespace {

struct Verb {
  const char* name;
  int (*run)(std::span<const std::string> arguments);
  const char* summary;
};

constexpr Verb kVerbs[] = {
    {"run", run_verb, "answer a prompt, or chat (-i)"},
    {"batch", batch_verb, "answer a file of requests, many at a time"},
    {"embed", embed_verb, "vectors of texts, of an embedding model"},
    {"rerank", rerank_verb, "texts by how well they answer a query"},
    {"serve", serve_verb, "models over HTTP: the APIs of OpenAI, Anthropic and Ollama"},
    {"pull", pull_verb, "fetch a model into the store"},
    {"list", list_verb, "the models of the store"},
    {"show", show_verb, "a stored model's source, hashes and contents"},
    {"rm", rm_verb, "remove models from the store"},
    {"cp", cp_verb, "a stored model under a second name, or out of the store"},
    {"serve-models", serve_models_verb, "a folder of models over HTTP"},
    {"peers", peers_verb, "the machines nearby that share, and what each has"},
    {"share", share_verb, "offer stored models to other machines, piece by piece"},
    {"web", web_verb, "chat with models in the browser: the page, served here"},
    {"convert", convert_verb, "a model to GGUF or RDRR, or to other number types"},
    {"devices", devices_verb, "list the GPUs and what they offer"},
    {"models", models_verb, "the families, and the results of their tests"},
    {"inspect", inspect_verb, "the contents and the needs of a model file"},
    {"verify", verify_verb, "check a model's bytes, structure and logits; repair it"},
    {"tokenize", tokenize_verb, "text to token ids"},
    {"detokenize", detokenize_verb, "token ids to text"},
    {"logits", logits_verb, "logits (and hidden states) of given tokens, as safetensors"},
    {"perplexity", perplexity_verb, "how well a model predicts a text"},
    {"graph", graph_verb, "a model as mathematics, and the rules that made its dispatches"},
    {"kernels", kernels_verb, "the kernel variants, and which are chosen and why"},
    {"synth", synth_verb, "write a model of a real shape with random weights"},
    {"bench", bench_verb, "measure prefill and decode speed"},
    {"tune", tune_verb, "find the fastest kernels for this device and a model"},
    {"squeeze", squeeze_verb, "measure, tune, measure again: the best speed of a model here"},
    {"compare", compare_verb, "ratios of two builds, from their bench reports"},
    {"profile", profile_verb, "where the time of a step goes, kernel by kernel"},
};

void print_help(std::FILE* out) {
  std::fprintf(out, "Doppler runs large language models on WebGPU.\n\nUsage: doppler VERB [flags]\n\n");
  for (const Verb& verb : kVerbs) std::fprintf(out, "  %-12s %s\n", verb.name, verb.summary);
  std::fprintf(out,
               "\ndoppler VERB --help lists the flags of a verb. doppler --version prints the version.\n");
}

int main_with(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    print_help(stderr);
    return 2;
  }
  const std::string& name = arguments[0];
  if (name == "--help" || name == "-h" || name == "help") {
    print_help(stdout);
    return 0;
  }
  if (name == "--version") {
    std::printf("doppler %s\n", DOPPLER_VERSION);
    return 0;
  }
  for (const Verb& verb : kVerbs) {
    if (name == verb.name) return finish_trace(verb.run(std::span(arguments).subspan(1)));
  }
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  const auto suggestion = nearest(name, names);
  std::fprintf(stderr, "doppler: Verb \"%s\" is not known%s.\n", printable(name).c_str(),
               suggestion ? ("; did you mean " + *suggestion).c_str() : "; see doppler --help");
  return 2;
}

}  // namespace
}  // namespace doppler::cli

int main(int argc, char** argv) {
  doppler::gpu::own_process();
  const int code = doppler::cli::main_with(doppler::begin_program(argc, argv));
  // A full disk must not look like success if the output is redirected to a file.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  // A reader that has seen enough is no fault.
  if (!doppler::is_pipe(doppler::StandardStream::kOutput))
    std::fprintf(stderr, "doppler: The output could not be written.\n");
  return code == 0 ? 1 : code;
}
