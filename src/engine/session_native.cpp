// The life of one generation in a Session (api_impl.h), and the small helpers of the public API.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/api_impl.h"
#include "engine/dispatch/dispatcher_native.h"
#include "engine/stream_impl.h"
#include "engine/tuning.h"

namespace doppler {

Result<void> Model::Impl::check_loaded() const {
  if (loaded) return {};
  return fail(ErrorKind::kDevice, "The GPU device was lost, and the model could not be loaded again.");
}

Result<void> Model::Impl::check_generates() const {
  DP_CHECK(check_loaded());
  if (driver) return {};
  DP_CHECK(model::check_writes_text(loaded->runner->config()));
  return fail(ErrorKind::kInternal, "The model was loaded for logits, not to write text.");
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

engine::Card::Card() = default;
engine::Card::~Card() = default;

// No driver may hand work to one that has ended, and no step may run on a card that is gone.
void Model::Impl::unload() {
  if (dispatcher) dispatcher->close();
  driver.reset();
  for (const auto& card : others) card->driver.reset();
  dispatcher.reset();
  split.reset();
  others.clear();
  loaded.reset();
  device.reset();
}

bool Model::Impl::is_device_lost() const {
  const auto is_lost = [](const engine::Card& card) {
    return card.device && !card.device->status() && !card.device->status();
  };
  return is_lost(*this) ||
         (split && std::ranges::any_of(others, [&](const auto& card) { return is_lost(*card); }));
}

Model::Impl::~Impl() { unload(); }
Session::Impl::Impl(std::shared_ptr<Model::Impl> owner) : model(std::move(owner)) {}
Session::Impl::~Impl() = default;

// ---- The generation under way

Result<void> Session::Impl::begin(const std::vector<uint32_t>& tokens, const GenerateOptions& chosen) {
  DP_CHECK(model->check_generates());
  losses = 0;
  engine::Request request;
  request.images = images;
  const auto submit = [&] { return Stream::Impl::begin(model, tokens, chosen, request, {}); };
  auto begun = submit();
  if (!begun && model->is_device_lost()) {
    DP_CHECK(open_again(begun.error()));
    begun = submit();
  }
  if (!begun) return forward(std::move(begun).error());
  stream.store(std::move(*begun));
  return {};
}

// The model is loaded again, unless another session has done so. A device that is lost again and again is given up.
Result<void> Session::Impl::open_again(const Error& loss) {
  constexpr uint32_t kMostLosses = 3;
  if (++losses > kMostLosses || !model->reload || (model->driver && model->driver->has_thread()))
    return forward(loss);
  const std::shared_ptr<Stream::Impl> now = stream.load();
  if (now && now->is_of_lost_device()) return {};
  log(LogLevel::kWarning, "%s The model is loaded again, and the answer goes on.", loss.sentence().c_str());
  return model->reload(*model);
}

// Goes on from the tokens that are known.
Result<void> Session::Impl::go_on_after_loss(const Error& loss) {
  DP_CHECK(open_again(loss));
  return stream.load()->submit(nullptr);
}

void Session::Impl::cancel() {
  cancelled.store(true, std::memory_order_relaxed);
  if (!model->driver || !model->driver->has_thread()) return;  // who waits for tokens looks at it
  if (const std::shared_ptr<Stream::Impl> now = stream.load()) now->cancel();
}

Result<Model::Impl::Prompt> Model::Impl::chat_prompt(std::span<const Message> messages) {
  DP_CHECK(check_loaded());
  DP_TRY(const Json list, messages_json(messages));
  DP_TRY(std::string text, engine::apply_chat_template(loaded->text, list, /*add_generation_prompt=*/true));
  std::vector<std::shared_ptr<const Image>> pictures;
  for (const Message& message : messages) {
    for (const ContentPart& part : message.parts) {
      if (part.image) pictures.push_back(part.image);
    }
  }
  if (!pictures.empty()) {
    DP_TRY(text, expand_pictures(loaded->text, text, pictures));
  }
  DP_TRY(const tokenizer::Tokenizer* of_model, tokenizer());
  // The template writes the special tokens itself.
  DP_TRY(const std::vector<int32_t> ids,
         of_model->encode(text, {.add_special = false, .parse_special = true}));
  return image_prompt(std::vector<uint32_t>(ids.begin(), ids.end()), pictures);
}

Result<std::string> expand_pictures(const engine::TextModel& model, std::string_view text,
                                    std::span<const std::shared_ptr<const Image>> pictures) {
  DP_TRY(const engine::ImageMarks* marks, engine::marks_of(model));
  std::vector<images::ImageShape> shapes;
  for (const auto& picture : pictures) {
    DP_TRY(const images::ImageRules rules, images::with_pan_and_scan(marks->rules, picture->pan_and_scan));
    DP_TRY(images::ImageShape shape, images::shape_of(rules, {picture->width, picture->height}));
    shapes.push_back(std::move(shape));
  }
  return engine::expand_images(*marks, text, shapes);
}

Result<Model::Impl::Prompt> Model::Impl::image_prompt(
    std::vector<uint32_t> tokens, std::span<const std::shared_ptr<const Image>> pictures) {
  Prompt prompt{.tokens = std::move(tokens), .images = {}};
  if (pictures.empty()) return prompt;
  DP_CHECK(check_loaded());
  DP_TRY(const engine::ImageMarks* marks, engine::marks_of(loaded->text));
  for (const auto& picture : pictures) {
    DP_TRY(const images::ImageRules rules, images::with_pan_and_scan(marks->rules, picture->pan_and_scan));
    DP_TRY(images::PreparedImage prepared,
           images::prepare_image(rules, {{picture->width, picture->height}, picture->rgb}));
    const std::lock_guard lock(image_mutex);
    if (!image_numbers) image_numbers.emplace(marks->rules, loaded->runner->images()->capacity());
    const std::string key = model::image_key(prepared);
    DP_TRY(auto held, image_numbers->add(std::move(prepared), key));
    prompt.images.push_back(std::move(held));
  }
  const std::lock_guard lock(image_mutex);
  DP_TRY(prompt.tokens, engine::place_images(*marks, prompt.tokens, prompt.images, *image_numbers));
  return prompt;
}

// ---- What a session is asked

Result<void> Session::Impl::start_ids(std::span<const int32_t> ids, const GenerateOptions& options) {
  if (is_generating()) {  // the last one was not finished
    DP_TRY([[maybe_unused]] const Generation unfinished, finish());
  }
  DP_TRY(const std::vector<uint32_t> added, Model::Impl::checked_ids(ids));
  return start_tokens(added, options);
}

Result<void> Session::Impl::start_tokens(std::span<const uint32_t> added, const GenerateOptions& options) {
  std::vector<uint32_t> prompt = sequence;
  prompt.insert(prompt.end(), added.begin(), added.end());
  cancelled.store(false, std::memory_order_relaxed);
  DP_CHECK(begin(prompt, options));  // after an error the session's text is unchanged
  sequence = std::move(prompt);
  messages.clear();  // start_chat() sets them
  return {};
}

Result<std::optional<std::string>> Session::Impl::next() {
  const std::shared_ptr<Stream::Impl> now = stream.load();
  if (!now) return fail(ErrorKind::kInternal, "next() was called without start().");
  auto piece = now->next(&cancelled);
  if (!piece && (now->is_of_lost_device() || model->is_device_lost())) {
    auto again = go_on_after_loss(piece.error());
    piece = again ? Result<std::optional<std::string>>(std::string()) : forward(std::move(again).error());
  }
  if (!piece) stream.store(nullptr);  // a device that failed: there is nothing to finish
  return piece;
}

// The caller wants no more tokens.
void Session::Impl::stop() {
  const std::shared_ptr<Stream::Impl> now = stream.load();
  if (!now->answer.ended()) now->cancel();
}

Result<Generation> Session::Impl::finish() {
  if (!is_generating()) return fail(ErrorKind::kInternal, "finish() was called without start().");
  stop();
  while (true) {
    DP_TRY(const std::optional<std::string> piece, next());
    if (!piece) break;
  }
  Generation done = stream.load()->answer.result();
  for (const int32_t token : done.tokens) sequence.push_back(static_cast<uint32_t>(token));
  if (!messages.empty()) messages.push_back({"assistant", done.text});
  stream.store(nullptr);
  return done;
}

Result<void> Session::Impl::start_chat(std::span<const Message> conversation,
                                       const GenerateOptions& options) {
  DP_TRY(Model::Impl::Prompt prompt, model->chat_prompt(conversation));
  if (is_generating()) {  // the last one was not finished
    DP_TRY([[maybe_unused]] const Generation unfinished, finish());
  }
  std::vector<uint32_t> before = std::exchange(sequence, {});
  engine::HeldImages images_before = std::exchange(images, std::move(prompt.images));
  auto started = start_tokens(prompt.tokens, options);
  if (started) {
    messages.assign(conversation.begin(), conversation.end());
  } else {
    sequence = std::move(before);
    images = std::move(images_before);
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

namespace {

// As templates read them.
Json parts_json(std::span<const ContentPart> parts) {
  Json list = Json::array();
  for (const ContentPart& part : parts) {
    Json shown = Json::object();
    shown["type"] = part.image ? "image" : "text";
    if (!part.image) shown["text"] = part.text;
    list.push_back(std::move(shown));
  }
  return list;
}

}  // namespace

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
    if (!message.parts.empty()) entry["content"] = parts_json(message.parts);
    list.push_back(std::move(entry));
  }
  return list;
}

Result<void> write_file_atomically(const std::string& path, std::span<const uint8_t> bytes) {
  const std::string temporary = path + ".part";
  OpenMode mode = kToWriteNew;
  mode.readers = FileReaders::kAsUserSet;
  OpenFile file = OpenFile::open(temporary, mode);
  if (!file) return fail(ErrorKind::kIo, "Cannot write %s: %s.", temporary.c_str(), std::strerror(errno));
  const bool written = file.write(bytes) && file.flush();
  const int error = errno;
  file.close();
  if (!written || !rename_path(temporary, path)) {
    const int reason = written ? errno : error;
    remove_file(temporary);
    return fail(ErrorKind::kIo, "Cannot write %s: %s.", path.c_str(), std::strerror(reason));
  }
  return {};
}

}  // namespace doppler
