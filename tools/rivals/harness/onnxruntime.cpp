// ONNX Runtime GenAI as an engine of protocol.h, through the C interface of its library: its Python package is a shell
// around that, and a program travels to machines with another Python. The packages carry no header, so the functions in
// use are declared here. The loop is the one of its own end-to-end benchmark. A graph is a folder that onnx_model.py
// made of the model file.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "protocol.h"

extern "C" {
struct OgaResult;
struct OgaConfig;
struct OgaModel;
struct OgaGeneratorParams;
struct OgaGenerator;
struct OgaTokenizer;
struct OrtApiBase {
  const void* (*get_api)(uint32_t version);
  const char* (*get_version)();
};
const OrtApiBase* OrtGetApiBase();
const char* OgaResultGetError(const OgaResult*);
void OgaDestroyResult(OgaResult*);
void OgaDestroyString(const char*);
void OgaDestroyConfig(OgaConfig*);
void OgaDestroyModel(OgaModel*);
void OgaDestroyGeneratorParams(OgaGeneratorParams*);
void OgaDestroyGenerator(OgaGenerator*);
void OgaDestroyTokenizer(OgaTokenizer*);
void OgaShutdown();
void OgaSetTelemetryEnabled(bool);
void OgaRegisterExecutionProviderLibrary(const char* name, const char* path);
OgaResult* OgaCreateConfig(const char* folder, OgaConfig**);
OgaResult* OgaConfigOverlay(OgaConfig*, const char* json);
OgaResult* OgaCreateModelFromConfig(const OgaConfig*, OgaModel**);
OgaResult* OgaModelGetDeviceType(const OgaModel*, const char**);
OgaResult* OgaCreateTokenizer(const OgaModel*, OgaTokenizer**);
OgaResult* OgaTokenizerDecode(const OgaTokenizer*, const int32_t* tokens, size_t count, const char**);
OgaResult* OgaCreateGeneratorParams(const OgaModel*, OgaGeneratorParams**);
OgaResult* OgaGeneratorParamsSetSearchNumber(OgaGeneratorParams*, const char* name, double);
OgaResult* OgaGeneratorParamsSetSearchBool(OgaGeneratorParams*, const char* name, bool);
OgaResult* OgaCreateGenerator(const OgaModel*, const OgaGeneratorParams*, OgaGenerator**);
OgaResult* OgaGenerator_AppendTokens(OgaGenerator*, const int32_t* tokens, size_t count);
OgaResult* OgaGenerator_GenerateNextToken(OgaGenerator*);
OgaResult* OgaGenerator_GetNextTokens(const OgaGenerator*, const int32_t**, size_t* count);
}

namespace {

namespace fs = std::filesystem;
using rivals::Clock, rivals::Freeing, rivals::Generated, rivals::Stream, rivals::Tokens, rivals::Values;

using Config = std::unique_ptr<OgaConfig, Freeing<OgaDestroyConfig>>;
using Model = std::unique_ptr<OgaModel, Freeing<OgaDestroyModel>>;
using Params = std::unique_ptr<OgaGeneratorParams, Freeing<OgaDestroyGeneratorParams>>;
using Generator = std::unique_ptr<OgaGenerator, Freeing<OgaDestroyGenerator>>;
using Tokenizer = std::unique_ptr<OgaTokenizer, Freeing<OgaDestroyTokenizer>>;
using Text = std::unique_ptr<const char, Freeing<OgaDestroyString>>;

// The plug-in's own name for what it provides.
constexpr const char* kWebGpu = "WebGpuExecutionProvider";
constexpr const char* kWebGpuLibrary = "libonnxruntime_providers_webgpu.so";

void check(OgaResult* result) {
  if (!result) return;
  const std::string message = OgaResultGetError(result);
  OgaDestroyResult(result);
  throw std::runtime_error(message);
}

// The result of one of its functions, owned.
template <typename Owner, typename Make>
Owner made(const Make& make) {
  typename Owner::pointer handle = nullptr;
  check(make(&handle));
  return Owner(handle);
}

std::string contents(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The number that follows "KEY": in a file that holds one.
uint32_t number_in(const std::string& json, const std::string& key) {
  const size_t at = json.find('"' + key + "\":");
  if (at == std::string::npos) throw std::runtime_error("genai_config.json has no " + key + ".");
  return static_cast<uint32_t>(std::stoul(json.substr(at + key.size() + 3)));
}

class OnnxRuntime : public rivals::Engine {
 public:
  rivals::Loaded load(const Values& values) override {
    OgaSetTelemetryEnabled(false);
    const fs::path libraries = rivals::value_or(values, "libraries", ".");
    const std::string graph = rivals::value_or(values, "graph", "");
    const std::string stem = fs::path(rivals::value_or(values, "model", "")).stem().string();
    const fs::path folder = libraries / "../../graphs" / (stem + "." + graph);
    if (!fs::exists(folder / "genai_config.json"))
      throw std::runtime_error("ENGINES/graphs/" + stem + "." + graph +
                               " does not exist; onnx_model.py makes it.");
    if (!registered_ && fs::exists(libraries / kWebGpuLibrary)) {
      OgaRegisterExecutionProviderLibrary(kWebGpu, (libraries / kWebGpuLibrary).c_str());
      registered_ = true;
    }

    const auto config = made<Config>([&](auto** out) { return OgaCreateConfig(folder.c_str(), out); });
    // No token ends an answer: it refuses ids outside the vocabulary, but takes an empty list.
    check(OgaConfigOverlay(config.get(), R"({"model":{"eos_token_id":[]}})"));
    const std::string threads = rivals::value_or(values, "threads", "");
    if (!threads.empty()) {
      const std::string session = R"({"intra_op_num_threads":)" + threads + "}";
      check(OgaConfigOverlay(config.get(),
                             (R"({"model":{"decoder":{"session_options":)" + session + "}}}").c_str()));
    }
    model_ = made<Model>([&](auto** out) { return OgaCreateModelFromConfig(config.get(), out); });
    tokenizer_ = made<Tokenizer>([&](auto** out) { return OgaCreateTokenizer(model_.get(), out); });
    context_ = rivals::number_or(values, "context", 0);

    const auto device = made<Text>([&](auto** out) { return OgaModelGetDeviceType(model_.get(), out); });
    return {.version = rivals::value_or(values, "version", "unknown") + " (ONNX Runtime " +
                       OrtGetApiBase()->get_version() + ")",
            .device = device.get(),
            .vocabulary = number_in(contents(folder / "genai_config.json"), "vocab_size"),
            .settings = {{"graph made as", contents(folder / "made_by")},
                         {"threads", threads.empty() ? "its default" : threads}}};
  }

  Generated generate(const std::vector<Tokens>& prompts, uint32_t count) override {
    Tokens together;
    for (const Tokens& prompt : prompts) {
      if (prompt.size() != prompts[0].size())
        throw std::runtime_error("Prompts of one batch must be of one length.");
      together.insert(together.end(), prompt.begin(), prompt.end());
    }
    const auto params = made<Params>([&](auto** out) { return OgaCreateGeneratorParams(model_.get(), out); });
    check(OgaGeneratorParamsSetSearchNumber(params.get(), "max_length", context_));
    check(OgaGeneratorParamsSetSearchNumber(params.get(), "batch_size", static_cast<double>(prompts.size())));
    check(OgaGeneratorParamsSetSearchBool(params.get(), "do_sample", false));
    const auto generator =
        made<Generator>([&](auto** out) { return OgaCreateGenerator(model_.get(), params.get(), out); });

    Generated out;
    out.streams.resize(prompts.size());
    const auto start = Clock::now();
    check(OgaGenerator_AppendTokens(generator.get(), together.data(), together.size()));
    next(generator.get(), out.streams);
    out.prefill = rivals::seconds_since(start);
    for (uint32_t step = 1; step < count; ++step) next(generator.get(), out.streams);
    out.seconds = rivals::seconds_since(start);
    for (Stream& stream : out.streams) {
      stream.ttft = out.prefill;
      stream.decode = out.seconds - out.prefill;
      stream.intervals = count - 1;
      stream.text = text_of(stream.tokens);
    }
    return out;
  }

 private:
  static void next(OgaGenerator* generator, std::vector<Stream>& streams) {
    check(OgaGenerator_GenerateNextToken(generator));
    const int32_t* tokens = nullptr;
    size_t count = 0;
    check(OgaGenerator_GetNextTokens(generator, &tokens, &count));
    if (count != streams.size())
      throw std::runtime_error("It gave " + std::to_string(count) + " tokens for " +
                               std::to_string(streams.size()) + " streams.");
    for (size_t i = 0; i < count; ++i) streams[i].tokens.push_back(tokens[i]);
  }

  std::string text_of(const Tokens& tokens) const {
    return made<Text>([&](auto** out) {
             return OgaTokenizerDecode(tokenizer_.get(), tokens.data(), tokens.size(), out);
           })
        .get();
  }

  Model model_;
  Tokenizer tokenizer_;
  uint32_t context_ = 0;
  bool registered_ = false;
};

}  // namespace

int main() {
  int code = 0;
  {
    OnnxRuntime engine;
    code = rivals::serve(engine);
  }
  OgaShutdown();
  return code;
}
