// The public API (include/doppler/doppler.h) over the engine's coroutines: every call drives its task to the
// end with the device's poll loop.
#include <algorithm>

#include "base/json.h"
#include "base/mapped_file.h"
#include "doppler/doppler.h"
#include "engine/adapter_registry_native.h"
#include "engine/api_impl.h"
#include "engine/dispatch/dispatcher_native.h"
#include "engine/model_options.h"
#include "engine/session_file.h"
#include "engine/session_identity.h"
#include "formats/file_set_native.h"

namespace doppler {

// ---- Model

Model::Model(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const ModelInfo& Model::info() const { return impl_->info; }

Counters Model::counters() const {
  if (!impl_->loaded) return {};
  Counters sum = engine::counters_since_load(*impl_->loaded, *impl_->device);
  for (const auto& card : impl_->others) {
    const Counters one = engine::counters_since_load(*card->loaded, *card->device);
    sum.submits += one.submits;
    sum.dispatches += one.dispatches;
    sum.readback_bytes += one.readback_bytes;
    sum.objects_created += one.objects_created;
  }
  return sum;
}

Result<std::vector<int32_t>> Model::tokenize(std::string_view text, bool add_special,
                                             bool parse_special) const {
  DP_TRY(const tokenizer::Tokenizer* tokenizer, impl_->tokenizer());
  return tokenizer->encode(text, {.add_special = add_special, .parse_special = parse_special});
}

Result<std::string> Model::detokenize(std::span<const int32_t> ids) const {
  DP_TRY(const tokenizer::Tokenizer* tokenizer, impl_->tokenizer());
  return tokenizer->decode(ids, {});
}

Result<std::string> Model::apply_chat_template(std::span<const Message> messages,
                                               bool add_generation_prompt) const {
  DP_CHECK(impl_->check_loaded());
  DP_TRY(const Json list, messages_json(messages));
  return engine::apply_chat_template(impl_->loaded->text, list, add_generation_prompt);
}

Result<void> Model::load_adapter(const std::string& name, const std::string& path) {
  DP_CHECK(impl_->check_loaded());
  DP_TRY(std::unique_ptr<formats::FileSet> files, formats::open_file_set(path));
  auto opening = engine::open_fitted(std::move(files), *impl_->loaded->runner);
  opening.start();  // natively it does not wait
  DP_TRY(std::shared_ptr<const formats::FittedAdapter> adapter, opening.take());
  impl_->adapters->add({.name = name, .scale = 1, .adapter = std::move(adapter)});
  return {};
}

Result<void> Model::unload_adapter(const std::string& name) { return impl_->adapters->remove(name); }

std::vector<AdapterInfo> Model::adapters() const { return impl_->adapters->list(); }

Result<void> Model::Impl::choose_adapters(const GenerateOptions& options, engine::Request& request) const {
  if (!options.adapters) return {};
  request.first_adapters = false;
  DP_TRY(request.settings.adapters, adapters->mix_of(*options.adapters));
  return {};
}

Session Model::new_session() { return Session(std::make_unique<Session::Impl>(impl_)); }

// ---- Session

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Generation> Session::generate(std::string_view prompt, const GenerateOptions& options,
                                     const TextCallback& on_text) {
  DP_CHECK(start(prompt, options));
  return impl_->run(on_text);
}

Result<Generation> Session::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                     const TextCallback& on_text) {
  DP_CHECK(impl_->start_ids(prompt, options));
  return impl_->run(on_text);
}

Result<Generation> Session::chat(std::span<const Message> messages, const GenerateOptions& options,
                                 const TextCallback& on_text) {
  DP_CHECK(impl_->start_chat(messages, options));
  return impl_->run(on_text);
}

Result<void> Session::start(std::string_view prompt, const GenerateOptions& options) {
  DP_TRY(const tokenizer::Tokenizer* tokenizer, impl_->model->tokenizer());
  const bool add_special = options.add_special && impl_->sequence.empty();
  DP_TRY(const std::vector<int32_t> ids,
         tokenizer->encode(prompt, {.add_special = add_special, .parse_special = true}));
  return impl_->start_ids(ids, options);
}

Result<std::optional<std::string>> Session::next() { return impl_->next(); }
Result<Generation> Session::finish() { return impl_->finish(); }
void Session::cancel() { impl_->cancel(); }
Session Session::fork() const {
  auto made = std::make_unique<Impl>(impl_->model);
  made->sequence = impl_->sequence;
  made->messages = impl_->messages;
  made->images = impl_->images;
  return Session(std::move(made));
}
void Session::reset() {
  impl_->sequence.clear();
  impl_->messages.clear();
  impl_->images.clear();
}
std::span<const Message> Session::messages() const { return impl_->messages; }
std::span<const int32_t> Session::tokens() const {
  return {reinterpret_cast<const int32_t*>(impl_->sequence.data()), impl_->sequence.size()};
}

Result<void> Session::save(const std::string& path) {
  Model::Impl& model = *impl_->model;
  DP_CHECK(model.check_generates());
  if (!impl_->images.empty()) {
    return fail(ErrorKind::kUnsupported,
                "A conversation with pictures cannot be saved: the file has no place "
                "for them.");
  }
  engine::SessionFile session;
  session.tokens = impl_->sequence;
  session.messages = impl_->messages;
  // Only what this session and the cache share is worth keeping; the rest is evaluated again after a restore.
  // Nothing is saved for several sequences: the prefix cache decides what it keeps.
  if (model.loaded->runner->runner()->holds_text()) {
    DP_TRY(session.cache, model.dispatcher->save(impl_->sequence));
  }
  DP_TRY(const std::string fingerprint,
         gpu::run_to_completion(*model.device, engine::session_fingerprint(*model.loaded)));
  return write_file_atomically(path, engine::encode_session(fingerprint, session));
}

Result<void> Session::restore(const std::string& path) {
  Model::Impl& model = *impl_->model;
  DP_CHECK(model.check_generates());
  model::DeviceModel& runner = *model.loaded->runner;
  DP_TRY(const MappedFile file, MappedFile::open(path));
  DP_TRY(const std::string fingerprint,
         gpu::run_to_completion(*model.device, engine::session_fingerprint(*model.loaded)));
  auto decoded = engine::decode_session(file.bytes(), fingerprint);
  if (!decoded) return forward(std::move(decoded).error().add_while("restoring " + path));
  DP_CHECK(file.check_whole());
  const uint32_t cached = model::KvCache::saved_positions(decoded->cache);
  // More tokens than the context holds are fine: they slid out, or the next generation will say so.
  if (cached > decoded->tokens.size() || cached > runner.ctx_len()) {
    return fail(ErrorKind::kInvalidInput,
                "The session in %s has %u tokens in its cache; the context holds %u (--ctx).", path.c_str(),
                cached, runner.ctx_len());
  }
  impl_->sequence = std::move(decoded->tokens);
  impl_->messages = std::move(decoded->messages);
  if (!runner.runner()->holds_text()) return {};  // its text is evaluated when it goes on
  return model.dispatcher->restore(std::span(impl_->sequence).first(cached), decoded->cache);
}

}  // namespace doppler
