// The life of one generation behind Session (api_impl.h), and the small helpers of the public API.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "engine/api_impl.h"
#include "engine/stream_impl.h"
#include "engine/tuning.h"

namespace doppler {

Result<void> Model::Impl::check_loaded() const {
  if (loaded) return {};
  return fail(ErrorKind::kDevice, "The GPU device was lost, and the model could not be loaded again.");
}

Result<const tokenizer::Tokenizer*> Model::Impl::tokenizer() const {
  DP_CHECK(check_loaded());
  if (loaded->text.tokenizer) return loaded->text.tokenizer.get();
  return fail(ErrorKind::kUnsupported, "The model's tokenizer cannot be used (token ids can): %s",
              loaded->text.tokenizer_problem.c_str());
}

Result<std::vector<uint32_t>> Model::Impl::checked_ids(std::span<const int32_t> ids) {
  std::vector<uint32_t> out;
  out.reserve(ids.size());
  for (const int32_t id : ids) {
    if (id < 0) return fail(ErrorKind::kInvalidInput, "Token %d is negative; token ids start at 0.", id);
    out.push_back(static_cast<uint32_t>(id));
  }
  return out;
}

Model::Impl::~Impl() = default;
Session::Impl::Impl(std::shared_ptr<Model::Impl> owner) : model(std::move(owner)) {}
Session::Impl::~Impl() = default;

// ---- The generation under way: a Generator of the one sequence, or a stream of several.

bool Session::Impl::is_generating() const { return generator || stream.load(); }

Result<void> Session::Impl::begin(std::vector<uint32_t> tokens, const GenerateOptions& chosen) {
  DP_CHECK(model->check_loaded());
  if (model->thread) {
    DP_TRY(std::unique_ptr<Stream::Impl> begun,
           Stream::Impl::begin(model, std::move(tokens), chosen, engine::Request(), {}));
    stream.store(std::move(begun));
    return {};
  }
  begun_prompt = std::move(tokens);
  begun_options = chosen;
  told_bytes = losses = 0;
  auto begun = begin_generator({});
  if (begun || !model->is_device_lost()) return begun;
  DP_CHECK(open_again(begun.error()));
  return begin_generator({});
}

Result<void> Session::Impl::begin_generator(std::span<const uint32_t> generated) {
  reloads = model->reloads;
  const bool is_cpu = model->device->caps().type == gpu::AdapterType::kCpu;
  engine::GeneratorConfig config = engine::generator_config(*model->loaded);
  if (is_cpu) config.prompt_rows = engine::kCpuPromptRows;
  generator.emplace(*model->loaded->runner, model->loaded->text.tokenizer.get(), config, model->cached_tokens,
                    cancelled);
  auto started = generator->start(begun_prompt, begun_options, generated);
  if (!started) generator.reset();
  return started;
}

// The model is loaded again, unless another session has done so. A device that is lost again and again is given up.
Result<void> Session::Impl::open_again(const Error& loss) {
  constexpr uint32_t kMostLosses = 3;
  if (++losses > kMostLosses || !model->reload) return forward(loss);
  if (is_reloaded()) return {};
  log(LogLevel::kWarning, "%s The model is loaded again, and the answer goes on.", loss.sentence().c_str());
  return model->reload(*model);
}

// Goes on from the tokens that are known. Gives what is new of the text.
Result<std::string> Session::Impl::go_on_after_loss(const Error& loss) {
  const std::vector<int32_t> known = generator->result().tokens;
  DP_CHECK(open_again(loss));
  DP_CHECK(begin_generator(std::vector<uint32_t>(known.begin(), known.end())));
  return generator->result().text.substr(std::min(told_bytes, generator->result().text.size()));
}

void Session::Impl::forget() {
  generator.reset();
  stream.store(nullptr);
}

const Generation& Session::Impl::result() const {
  const std::shared_ptr<Stream::Impl> now = stream.load();
  return now ? now->answer.result() : generator->result();
}

void Session::Impl::stop() {
  const std::shared_ptr<Stream::Impl> now = stream.load();
  if (!now) {
    generator->stop();
  } else if (!now->answer.ended()) {
    now->cancel();
  }
}

void Session::Impl::cancel() {
  cancelled.store(true, std::memory_order_relaxed);
  if (const std::shared_ptr<Stream::Impl> now = stream.load()) now->cancel();
}

// ---- What a session is asked

Result<void> Session::Impl::start_ids(std::span<const int32_t> ids, const GenerateOptions& options) {
  if (is_generating()) {  // the last one was not finished
    DP_TRY([[maybe_unused]] const Generation unfinished, finish());
  }
  DP_TRY(const std::vector<uint32_t> added, Model::Impl::checked_ids(ids));
  std::vector<uint32_t> prompt = sequence;
  prompt.insert(prompt.end(), added.begin(), added.end());
  cancelled.store(false, std::memory_order_relaxed);
  DP_CHECK(begin(prompt, options));  // after an error the session's text stays as it was
  sequence = std::move(prompt);
  messages.clear();  // start_chat() sets them
  return {};
}

Result<std::optional<std::string>> Session::Impl::next() {
  if (!is_generating()) return fail(ErrorKind::kInternal, "next() was called without start().");
  const std::shared_ptr<Stream::Impl> now = stream.load();
  auto piece = now ? now->next() : next_of_generator();
  if (!piece) forget();  // a device that failed: there is nothing to finish
  return piece;
}

Result<std::optional<std::string>> Session::Impl::next_of_generator() {
  using Piece = std::optional<std::string>;
  auto piece = is_reloaded() ? fail(ErrorKind::kDevice, "The GPU device was lost.")
                             : gpu::run_to_completion(*model->device, generator->next());
  if (!piece && (is_reloaded() || model->is_device_lost())) {
    DP_TRY(std::string text, go_on_after_loss(piece.error()));
    piece = Piece(std::move(text));
  }
  if (piece && *piece) told_bytes += (*piece)->size();
  return piece;
}

Result<Generation> Session::Impl::finish() {
  if (!is_generating()) return fail(ErrorKind::kInternal, "finish() was called without start().");
  stop();
  while (true) {
    DP_TRY(const std::optional<std::string> piece, next());
    if (!piece) break;
  }
  Generation done = result();
  for (const int32_t token : done.tokens) sequence.push_back(static_cast<uint32_t>(token));
  if (!messages.empty()) messages.push_back({"assistant", done.text});
  forget();
  return done;
}

Result<void> Session::Impl::start_chat(std::span<const Message> conversation,
                                       const GenerateOptions& options) {
  DP_CHECK(model->check_loaded());
  DP_TRY(const Json list, messages_json(conversation));
  DP_TRY(const std::string text, engine::apply_chat_template(model->loaded->text, list,
                                                             /*add_generation_prompt=*/true));
  DP_TRY(const tokenizer::Tokenizer* tokenizer, model->tokenizer());
  // The template writes the special tokens itself.
  DP_TRY(const std::vector<int32_t> ids,
         tokenizer->encode(text, {.add_special = false, .parse_special = true}));
  if (is_generating()) {  // the last one was not finished
    DP_TRY([[maybe_unused]] const Generation unfinished, finish());
  }
  std::vector<uint32_t> before = std::exchange(sequence, {});
  auto started = start_ids(ids, options);
  if (started) {
    messages.assign(conversation.begin(), conversation.end());
  } else {
    sequence = std::move(before);
  }
  return started;
}

Result<Generation> Session::Impl::run(const TextCallback& on_text) {
  bool wanted = true;  // a caller who stopped is not called again, although the text may end with a rest
  while (true) {
    DP_TRY(const std::optional<std::string> piece, next());
    if (!piece) return finish();
    if (!on_text || !wanted || piece->empty()) continue;
    wanted = on_text(*piece);
    if (!wanted) stop();
  }
}

Result<Json> messages_json(std::span<const Message> messages) {
  // A template may write any role as it stands; a model then sees what it was never trained with.
  static constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};
  Json list = Json::array();
  for (const Message& message : messages) {
    if (std::ranges::count(kRoles, message.role) == 0) {
      return fail(ErrorKind::kInvalidInput,
                  "A message's role is \"%s\"; allowed are system, developer, user, assistant and tool.",
                  printable(message.role).c_str());
    }
    Json entry = Json::object();
    entry["role"] = message.role;
    entry["content"] = message.content;
    list.push_back(std::move(entry));
  }
  return list;
}

Result<void> write_file_atomically(const std::string& path, std::span<const uint8_t> bytes) {
  const std::string temporary = path + ".part";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (!file) return fail(ErrorKind::kIo, "Cannot write %s: %s.", temporary.c_str(), std::strerror(errno));
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() &&
                       std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  const int error = errno;
  std::fclose(file);
  if (!written || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = written ? errno : error;
    std::remove(temporary.c_str());
    return fail(ErrorKind::kIo, "Cannot write %s: %s.", path.c_str(), std::strerror(reason));
  }
  return {};
}

}  // namespace doppler
