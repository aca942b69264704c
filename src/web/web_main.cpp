// The functions that JavaScript calls (web/instance.mjs). Requests are JSON in memory from doppler_alloc(), freed here.
// Every call has a number. It reports through dp_progress, dp_piece and dp_bytes until dp_answer ends it, which some
// calls do at once.
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/host_web.h"
#include "base/log.h"
#include "web/web_model.h"

namespace doppler::web {
namespace {

// 0: loading is to stop.
DP_HOST_IMPORT("dp_progress")
uint32_t host_progress(uint32_t call, const char* stage, uint32_t stage_bytes, double done, double total);
// Tokens of an answer and the text that is certain with them.
DP_HOST_IMPORT("dp_piece")
void host_piece(uint32_t call, const int32_t* tokens, uint32_t count, const char* text, uint32_t bytes);
// The part of a result that is no JSON; dp_answer follows.
DP_HOST_IMPORT("dp_bytes") void host_bytes(uint32_t call, const uint8_t* bytes, uint32_t count);
// json: the result, or with ok = 0 {"kind", "message"}.
DP_HOST_IMPORT("dp_answer") void host_answer(uint32_t call, uint32_t ok, const char* json, uint32_t bytes);
DP_HOST_IMPORT("dp_log") void host_log(uint32_t level, const char* text, uint32_t bytes);

uint32_t size32(std::string_view text) { return static_cast<uint32_t>(text.size()); }

const char* kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidInput:
      return "invalid-input";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kOutOfMemory:
      return "out-of-memory";
    case ErrorKind::kDevice:
      return "device";
    case ErrorKind::kIo:
      return "io";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kInternal:
      break;
  }
  return "internal";
}

void answer(uint32_t call, const Result<Json>& result) {
  const std::string text =
      result ? to_text(*result)
             : to_text({{"kind", kind_name(result.error().kind())}, {"message", result.error().message()}});
  host_answer(call, result ? 1 : 0, text.data(), size32(text));
}

struct Instance {
  WebModel model;
  std::map<uint32_t, Task<bool>> calls;  // by call number; finished ones go when the next one starts
};
std::unique_ptr<Instance> g_instance;
Instance& instance() {
  if (!g_instance) g_instance = std::make_unique<Instance>();
  return *g_instance;
}

Task<bool> run(uint32_t call, Task<Result<Json>> task) {
  const Result<Json> result = co_await std::move(task);
  answer(call, result);
  co_return true;
}

void start(uint32_t call, Task<Result<Json>> task) {
  std::erase_if(instance().calls, [](const auto& entry) { return entry.second.done(); });
  auto& running = instance().calls[call] = run(call, std::move(task));
  running.start();
}

// Takes the request's memory.
Result<Json> take_request(char* data, uint32_t bytes) {
  auto request = parse_json(std::string_view(data, bytes), "the request");
  std::free(data);
  return request;
}

Task<Result<Json>> save(uint32_t call, Json request) {
  auto saving = instance().model.save(std::move(request));
  DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(saving));
  host_bytes(call, bytes.data(), static_cast<uint32_t>(bytes.size()));
  co_return Json::object();
}

Task<Result<Json>> embed(uint32_t call, Json request) {
  auto embedding = instance().model.embed(std::move(request));
  DP_CO_TRY(const Embedding made, co_await std::move(embedding));
  const std::span<const uint8_t> bytes = bytes_of(made.values);
  host_bytes(call, bytes.data(), static_cast<uint32_t>(bytes.size()));
  co_return Json({{"tokens", made.tokens}});
}

// A question that is answered at once.
void ask(uint32_t call, char* data, uint32_t bytes, Result<Json> (WebModel::*question)(const Json&) const) {
  const auto request = take_request(data, bytes);
  answer(call, request ? (instance().model.*question)(*request) : Result<Json>(forward(request.error())));
}

}  // namespace

DP_HOST_EXPORT("doppler_load") void export_load(uint32_t call, char* data, uint32_t bytes) {
  set_log_sink([](LogLevel level, std::string_view line) {
    host_log(static_cast<uint32_t>(level), line.data(), size32(line));
  });
  auto request = take_request(data, bytes);
  if (!request) return answer(call, forward(std::move(request).error()));
  start(call,
        instance().model.load(std::move(*request), [call](const char* stage, uint64_t done, uint64_t total) {
          return host_progress(call, stage, size32(stage), static_cast<double>(done),
                               static_cast<double>(total)) != 0;
        }));
}

DP_HOST_EXPORT("doppler_generate") void export_generate(uint32_t call, char* data, uint32_t bytes) {
  auto request = take_request(data, bytes);
  if (!request) return answer(call, forward(std::move(request).error()));
  start(call, instance().model.generate(call, std::move(*request),
                                        [call](std::span<const int32_t> tokens, const std::string& text) {
                                          host_piece(call, tokens.data(),
                                                     static_cast<uint32_t>(tokens.size()), text.data(),
                                                     size32(text));
                                        }));
}

DP_HOST_EXPORT("doppler_embed") void export_embed(uint32_t call, char* data, uint32_t bytes) {
  auto request = take_request(data, bytes);
  if (!request) return answer(call, forward(std::move(request).error()));
  start(call, embed(call, std::move(*request)));
}

DP_HOST_EXPORT("doppler_rerank") void export_rerank(uint32_t call, char* data, uint32_t bytes) {
  auto request = take_request(data, bytes);
  if (!request) return answer(call, forward(std::move(request).error()));
  start(call, instance().model.rerank(std::move(*request)));
}

DP_HOST_EXPORT("doppler_adapters") void export_adapters(uint32_t call, char* data, uint32_t bytes) {
  auto request = take_request(data, bytes);
  if (!request) return answer(call, forward(std::move(request).error()));
  start(call, instance().model.change_adapters(std::move(*request)));
}

DP_HOST_EXPORT("doppler_save") void export_save(uint32_t call, char* data, uint32_t bytes) {
  auto request = take_request(data, bytes);
  if (!request) return answer(call, forward(std::move(request).error()));
  start(call, save(call, std::move(*request)));
}

// data: a saved session.
DP_HOST_EXPORT("doppler_restore") void export_restore(uint32_t call, char* data, uint32_t bytes) {
  std::vector<uint8_t> saved(data, data + bytes);
  std::free(data);
  start(call, instance().model.restore(std::move(saved)));
}

// data: as WebPictures::add() takes it.
DP_HOST_EXPORT("doppler_picture") void export_picture(uint32_t call, char* data, uint32_t bytes) {
  answer(call, instance().model.add_picture({reinterpret_cast<const uint8_t*>(data), bytes}));
  std::free(data);
}

DP_HOST_EXPORT("doppler_tokenize") void export_tokenize(uint32_t call, char* data, uint32_t bytes) {
  ask(call, data, bytes, &WebModel::tokenize);
}
DP_HOST_EXPORT("doppler_detokenize") void export_detokenize(uint32_t call, char* data, uint32_t bytes) {
  ask(call, data, bytes, &WebModel::detokenize);
}
DP_HOST_EXPORT("doppler_chat") void export_chat(uint32_t call, char* data, uint32_t bytes) {
  ask(call, data, bytes, &WebModel::begin_chat);
}
DP_HOST_EXPORT("doppler_grammar") void export_grammar(uint32_t call, char* data, uint32_t bytes) {
  ask(call, data, bytes, &WebModel::read_grammar);
}
DP_HOST_EXPORT("doppler_vocabulary") void export_vocabulary(uint32_t call) {
  const auto made = instance().model.vocabulary();
  if (!made) return answer(call, forward(made.error()));
  host_bytes(call, made->first.data(), static_cast<uint32_t>(made->first.size()));
  answer(call, Json({{"ends", made->second}}));
}
DP_HOST_EXPORT("doppler_template") void export_template(uint32_t call, char* data, uint32_t bytes) {
  ask(call, data, bytes, &WebModel::apply_template);
}
DP_HOST_EXPORT("doppler_kernels") void export_kernels(uint32_t call) {
  answer(call, instance().model.kernels());
}

// The generation of that call ends, and is answered with what it has.
DP_HOST_EXPORT("doppler_cancel") void export_cancel(uint32_t call) { instance().model.cancel(call); }

// Gives back the model, its device and what is under way, which is not answered any more.
DP_HOST_EXPORT("doppler_free") void export_free() { g_instance.reset(); }

}  // namespace doppler::web
