// llama.cpp as an engine of protocol.h, through libllama's C API with the header of the very release that is measured.
// The loop is the one of its own batched benchmark (prompts in batches of n_batch, then a step of all sequences at a
// time), with its greedy sampler, so that the tokens are real. The libraries next to it and `layers` decide which
// backend computes.
#include <ggml-backend.h>
#include <llama.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "protocol.h"

namespace {

using rivals::Clock, rivals::Generated, rivals::Stream, rivals::Tokens, rivals::Values;

constexpr uint32_t kAllLayers = 999;

struct FreeModel {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct FreeContext {
  void operator()(llama_context* context) const { llama_free(context); }
};
struct FreeSampler {
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};

// Errors and warnings go to the harness's log, the rest nowhere.
void log(ggml_log_level level, const char* text, void* /*data*/) {
  if (level >= GGML_LOG_LEVEL_WARN) std::fputs(text, stderr);
}

// The first GPU, or else the processor: what llama.cpp itself takes.
std::string device_name() {
  std::string cpu = "CPU";
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    if (ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU)
      return ggml_backend_dev_description(device);
    cpu = ggml_backend_dev_description(device);
  }
  return cpu;
}

llama_flash_attn_type flash_of(const std::string& word) {
  if (word == "on") return LLAMA_FLASH_ATTN_TYPE_ENABLED;
  if (word == "off") return LLAMA_FLASH_ATTN_TYPE_DISABLED;
  if (word == "auto") return LLAMA_FLASH_ATTN_TYPE_AUTO;
  throw std::runtime_error("flash=" + word + " is not known; allowed are auto, on and off.");
}

ggml_type cache_type_of(const std::string& word) {
  if (word == "f16") return GGML_TYPE_F16;
  if (word == "f32") return GGML_TYPE_F32;
  if (word == "q8_0") return GGML_TYPE_Q8_0;
  throw std::runtime_error("kv=" + word + " is not known; allowed are f16, f32 and q8_0.");
}

class Llama : public rivals::Engine {
 public:
  ~Llama() override { llama_batch_free(batch_); }

  rivals::Loaded load(const Values& values) override {
    if (!model_) {
      llama_log_set(log, nullptr);
      ggml_backend_load_all_from_path(rivals::value_or(values, "libraries", ".").c_str());
      llama_backend_init();
    }
    context_.reset();
    model_.reset();
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = static_cast<int32_t>(rivals::number_or(values, "layers", kAllLayers));
    model_.reset(llama_model_load_from_file(rivals::value_or(values, "model", "").c_str(), model_params));
    if (!model_) throw std::runtime_error("llama_model_load_from_file failed; the log has its reasons.");

    streams_ = rivals::number_or(values, "streams", 1);
    const uint32_t context = rivals::number_or(values, "context", 0);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = context * streams_;
    params.n_seq_max = streams_;
    params.n_batch = std::min(rivals::number_or(values, "batch", params.n_batch), params.n_ctx);
    params.n_ubatch = std::min(rivals::number_or(values, "ubatch", params.n_ubatch), params.n_batch);
    const std::string flash = rivals::value_or(values, "flash", "auto");
    const std::string cache = rivals::value_or(values, "kv", "f16");
    params.flash_attn_type = flash_of(flash);
    params.type_k = params.type_v = cache_type_of(cache);
    const uint32_t threads = rivals::number_or(values, "threads", std::thread::hardware_concurrency());
    params.n_threads = params.n_threads_batch = static_cast<int32_t>(threads);
    context_.reset(llama_init_from_model(model_.get(), params));
    if (!context_) throw std::runtime_error("llama_init_from_model failed; the log has its reasons.");
    sampler_.reset(llama_sampler_init_greedy());
    n_batch_ = params.n_batch;
    llama_batch_free(batch_);
    batch_ = llama_batch_init(static_cast<int32_t>(std::max(n_batch_, streams_)), 0, 1);

    const llama_vocab* vocabulary = llama_model_get_vocab(model_.get());
    return {.version = rivals::value_or(values, "version", "unknown"),
            .device = device_name(),
            .vocabulary = static_cast<uint32_t>(llama_vocab_n_tokens(vocabulary)),
            .settings = {{"cache type", cache},
                         {"flash attention", flash},
                         {"n_batch", std::to_string(params.n_batch)},
                         {"n_ubatch", std::to_string(params.n_ubatch)},
                         {"threads", std::to_string(params.n_threads)},
                         {"layers on the device", std::to_string(model_params.n_gpu_layers)}}};
  }

  Generated generate(const std::vector<Tokens>& prompts, uint32_t count) override {
    if (prompts.size() > streams_)
      throw std::runtime_error(std::to_string(prompts.size()) + " prompts are more than the loaded streams.");
    llama_memory_clear(llama_get_memory(context_.get()), false);
    Generated out;
    out.streams.resize(prompts.size());
    const auto start = Clock::now();
    prefill(prompts, out.streams, start);
    out.prefill = rivals::seconds_since(start);
    for (uint32_t step = 1; step < count; ++step) decode(prompts, out.streams, step);
    out.seconds = rivals::seconds_since(start);
    for (Stream& stream : out.streams) {
      stream.decode = out.seconds - out.prefill;
      stream.intervals = count - 1;
      stream.text = text_of(stream.tokens);
    }
    return out;
  }

 private:
  void add(llama_token token, size_t position, size_t sequence, bool logits) {
    const int32_t at = batch_.n_tokens++;
    batch_.token[at] = token;
    batch_.pos[at] = static_cast<llama_pos>(position);
    batch_.n_seq_id[at] = 1;
    batch_.seq_id[at][0] = static_cast<llama_seq_id>(sequence);
    batch_.logits[at] = logits ? 1 : 0;
  }

  void evaluate() {
    const int32_t code = llama_decode(context_.get(), batch_);
    if (code != 0) throw std::runtime_error("llama_decode failed with " + std::to_string(code) + ".");
  }

  void prefill(const std::vector<Tokens>& prompts, std::vector<Stream>& streams, Clock::time_point start) {
    std::vector<std::pair<size_t, int32_t>> ended;  // sequences whose prompt ends in this batch, and where
    batch_.n_tokens = 0;
    const auto flush = [&] {
      evaluate();
      for (const auto& [sequence, at] : ended) {
        streams[sequence].tokens.push_back(llama_sampler_sample(sampler_.get(), context_.get(), at));
        streams[sequence].ttft = rivals::seconds_since(start);
      }
      ended.clear();
      batch_.n_tokens = 0;
    };
    for (size_t sequence = 0; sequence < prompts.size(); ++sequence) {
      const Tokens& prompt = prompts[sequence];
      for (size_t position = 0; position < prompt.size(); ++position) {
        const bool last = position + 1 == prompt.size();
        if (last) ended.emplace_back(sequence, batch_.n_tokens);
        add(prompt[position], position, sequence, last);
        if (static_cast<uint32_t>(batch_.n_tokens) == n_batch_) flush();
      }
    }
    if (batch_.n_tokens > 0) flush();
  }

  void decode(const std::vector<Tokens>& prompts, std::vector<Stream>& streams, uint32_t step) {
    batch_.n_tokens = 0;
    for (size_t sequence = 0; sequence < streams.size(); ++sequence) {
      add(streams[sequence].tokens.back(), prompts[sequence].size() + step - 1, sequence, true);
    }
    evaluate();
    for (size_t sequence = 0; sequence < streams.size(); ++sequence) {
      streams[sequence].tokens.push_back(
          llama_sampler_sample(sampler_.get(), context_.get(), static_cast<int32_t>(sequence)));
    }
  }

  std::string text_of(const Tokens& tokens) const {
    std::string text(tokens.size() * 16 + 64, '\0');
    const int32_t length = llama_detokenize(llama_model_get_vocab(model_.get()), tokens.data(),
                                            static_cast<int32_t>(tokens.size()), text.data(),
                                            static_cast<int32_t>(text.size()), false, false);
    text.resize(length > 0 ? static_cast<size_t>(length) : 0);
    return text;
  }

  std::unique_ptr<llama_model, FreeModel> model_;
  std::unique_ptr<llama_context, FreeContext> context_;
  std::unique_ptr<llama_sampler, FreeSampler> sampler_;
  llama_batch batch_ = {};
  uint32_t streams_ = 1, n_batch_ = 0;
};

}  // namespace

int main() {
  Llama engine;
  return rivals::serve(engine);
}
