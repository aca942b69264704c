#include "server/files/batches.h"

#include <chrono>
#include <ctime>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "openai/batch_line.h"
#include "openai/completion_request.h"
#include "server/files/record.h"
#include "server/start_chat.h"

namespace doppler::server {
namespace {

constexpr const char* kBatchesIdPrefix = "batch_";
constexpr const char* kWindow = "24h";  // the only window of OpenAI's API; no batch is late here
constexpr size_t kMostMetadata = 16;    // OpenAI's limit
constexpr auto kTick = std::chrono::milliseconds(100);

bool has_ended(const std::string& status) {
  return status == "completed" || status == "failed" || status == "cancelled";
}

std::string text_in(const Json& record, const char* key) {
  const auto text = get_string(record, key);
  return text ? text->value_or("") : "";
}

// Answers and errors lie together until the batch is done.
std::string work_name(const std::string& id) { return id + ".jsonl"; }
std::string part_name(const std::string& id, const char* part) { return id + "." + part; }

Json counts_json(uint64_t total, uint64_t completed, uint64_t failed) {
  return {{"total", total}, {"completed", completed}, {"failed", failed}};
}

Result<void> check_metadata(const Json* metadata) {
  bool is_good = !metadata || metadata->is_null() || metadata->is_object();
  if (is_good && metadata) {
    is_good = metadata->size() <= kMostMetadata;
    for (const Json& value : *metadata) is_good = is_good && value.is_string();
  }
  if (is_good) return {};
  return fail(ErrorKind::kInvalidInput, "Field \"metadata\" must be an object of at most %zu texts.",
              kMostMetadata);
}

// The first readable request names the model that answers all requests.
Result<std::string> first_model(openai::LineReader& reader) {
  while (true) {
    DP_TRY(const auto text, reader.next());
    if (!text) return std::string();
    const auto line = openai::parse_batch_line(text->text, text->number, {});
    if (line.completion) return line.completion->model;
  }
}

}  // namespace

// The model's scheduler comes from the model's thread.
struct Batches::Work {
  struct Model {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<Scheduler> scheduler;
    openai::TokenText token_text;
    batch::StartChat start_chat;
    std::optional<Error> error;
  };

  std::string id;
  std::string endpoint;
  StoredFile input;
  uint64_t lines = 0;
  std::shared_ptr<ModelHost> host;
  std::unique_ptr<ModelHost::Use> use;  // it stays loaded
  std::shared_ptr<Model> model = std::make_shared<Model>();
};

Batches::Batches(FileStore& files, Models& models, BatchOptions options)
    : files_(files), models_(models), options_(std::move(options)) {
  for (auto& [id, record] : read_records(files_.folder(), kBatchesIdPrefix))
    batches_.emplace(id, std::move(record));
  thread_ = std::thread([this] { run(); });
}

Batches::~Batches() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

Result<Json> Batches::create(const Json& body) {
  DP_TRY(const auto input, get_string(body, "input_file_id"));
  DP_TRY(const auto endpoint, get_string(body, "endpoint"));
  DP_TRY(const auto window, get_string(body, "completion_window"));
  const auto file = files_.get(input.value_or(""));
  if (!file || file->purpose != "batch") {
    return fail(ErrorKind::kInvalidInput,
                "Field \"input_file_id\" is \"%s\"; allowed is a file of purpose \"batch\".",
                printable(input.value_or("")).c_str());
  }
  if (endpoint != openai::kChatPath && endpoint != openai::kCompletionsPath) {
    return fail(ErrorKind::kInvalidInput, "Field \"endpoint\" is \"%s\"; allowed are %s and %s.",
                printable(endpoint.value_or("")).c_str(), openai::kChatPath, openai::kCompletionsPath);
  }
  if (window.value_or(kWindow) != kWindow) {
    return fail(ErrorKind::kInvalidInput, "Field \"completion_window\" is \"%s\"; allowed is %s.",
                printable(*window).c_str(), kWindow);
  }
  const Json* metadata = find(body, "metadata");
  DP_CHECK(check_metadata(metadata));
  DP_CHECK(files_.check_room(file->bytes));
  const std::string id = new_id(kBatchesIdPrefix);
  Json record = {{"id", id},
                 {"object", "batch"},
                 {"endpoint", *endpoint},
                 {"input_file_id", file->id},
                 {"completion_window", kWindow},
                 {"status", "validating"},
                 {"created_at", std::time(nullptr)},
                 {"request_counts", counts_json(0, 0, 0)},
                 {"metadata", metadata ? *metadata : Json()}};
  const std::lock_guard lock(mutex_);
  forget_oldest();
  if (batches_.size() >= kMostKept)
    return fail(ErrorKind::kOutOfMemory, "%zu batches wait; no more are taken now.", batches_.size());
  DP_CHECK(write_record(files_.folder(), id, record));
  batches_.emplace(id, record);
  changed_.notify_all();
  return record;
}

void Batches::forget_oldest() {
  for (auto at = batches_.begin(); at != batches_.end() && batches_.size() >= kMostKept;) {
    if (!has_ended(text_in(at->second, "status"))) {
      ++at;
      continue;
    }
    remove_record(files_.folder(), at->first);
    at = batches_.erase(at);
  }
}

std::optional<Json> Batches::get(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.find(id);
  return found == batches_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Json> Batches::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Json> out;
  for (const auto& [id, record] : batches_) out.push_back(record);
  return out;
}

std::string Batches::status_of(const std::string& id) const {
  const auto record = get(id);
  return record ? text_in(*record, "status") : "";
}

bool Batches::change(const std::string& id, const Json& fields) {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.find(id);
  if (found == batches_.end()) return false;
  found->second.update(fields);
  if (const auto written = write_record(files_.folder(), id, found->second); !written)
    log(LogLevel::kError, "%s", written.error().message().c_str());
  changed_.notify_all();
  return true;
}

std::optional<Json> Batches::cancel(const std::string& id) {
  const std::string status = status_of(id);
  if (status == "validating" || status == "in_progress")
    change(id, {{"status", "cancelling"}, {"cancelling_at", std::time(nullptr)}});
  return get(id);
}

// The thread: the oldest batch that has not ended, until there is none.
void Batches::run() {
  while (true) {
    std::string next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] {
        for (const auto& [id, record] : batches_) {
          if (!next.empty() || has_ended(text_in(record, "status"))) continue;
          next = id;
        }
        return stopping_ || !next.empty();
      });
      if (stopping_) return;
    }
    answer(next);
  }
}

void Batches::answer(const std::string& id) {
  const auto record = get(id);
  if (!record) return;
  const auto input = files_.get(text_in(*record, "input_file_id"));
  if (!input) {
    return fail_batch(id, "invalid_file",
                      Error(ErrorKind::kInvalidInput, "The batch's input file was deleted."));
  }
  Work work{.id = id, .endpoint = text_in(*record, "endpoint"), .input = *input};
  const auto totals = answer_lines(work);
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;  // goes on when the server begins again
  }
  // Answers are kept in any case.
  if (auto kept = keep_answers(work); !kept) return fail_batch(id, "server_error", kept.error());
  if (totals || status_of(id) == "cancelling") return finish_batch(id);
  fail_batch(id, totals.error().kind() == ErrorKind::kInvalidInput ? "invalid_file" : "server_error",
             totals.error());
}

Result<batch::BatchTotals> Batches::answer_lines(Work& work) {
  DP_TRY(openai::LineReader reader, openai::LineReader::open(files_.path_of(work.input)));
  DP_TRY(const uint64_t lines, openai::count_lines(reader));
  if (lines == 0) return fail(ErrorKind::kInvalidInput, "The batch's input file has no line.");
  work.lines = lines;
  DP_TRY(const std::string name, first_model(reader));
  work.host = models_.find(name);
  if (!work.host)
    return fail(ErrorKind::kInvalidInput, "Model \"%s\" is not served here; /v1/models lists what is.",
                printable(name).c_str());
  DP_CHECK(reader.rewind());
  DP_CHECK(find_model(work));
  if (status_of(work.id) == "validating")
    change(work.id, {{"status", "in_progress"}, {"in_progress_at", std::time(nullptr)}});
  DP_TRY(openai::BatchOutput output, openai::BatchOutput::open(files_.folder().path_of(work_name(work.id))));
  const auto check = [&](const openai::BatchLine& request) -> Result<void> {
    const bool is_chat = request.completion->endpoint == openai::Endpoint::kChatCompletions;
    if (work.endpoint != (is_chat ? openai::kChatPath : openai::kCompletionsPath))
      return fail(ErrorKind::kInvalidInput, "Field \"url\" must be the batch's, %s.", work.endpoint.c_str());
    if (models_.find(request.completion->model) == work.host) return {};
    return fail(ErrorKind::kInvalidInput,
                "Field \"model\" is \"%s\"; the batch's first request is for \"%s\".",
                printable(request.completion->model).c_str(), work.host->source().name.c_str());
  };
  const auto on_tick = [&](const batch::BatchTotals& totals) {
    const std::lock_guard lock(mutex_);
    Json& record = batches_[work.id];
    record["request_counts"] = counts_json(totals.lines, totals.before + totals.answered, totals.failed);
    return !stopping_ && text_in(record, "status") != "cancelling";
  };
  batch::BatchRun run(*work.model->scheduler, reader, output,
                      {.defaults = options_.defaults,
                       .in_flight = options_.in_flight,
                       .model = work.host->source().name,
                       .start_chat = work.model->start_chat,
                       .token_text = work.model->token_text,
                       .client = std::hash<std::string>()(work.id),
                       .check = check,
                       .on_tick = on_tick},
                      lines);
  return run.run();
}

// Waits for the model.
Result<void> Batches::find_model(Work& work) {
  work.use = std::make_unique<ModelHost::Use>(*work.host);
  models_.ask(work.host, [model = work.model](ReadyModel* ready, const Error* error) {
    const std::lock_guard lock(model->mutex);
    if (error) {
      model->error = *error;
    } else if (auto scheduler = ready->model.scheduler()) {
      model->start_chat = chat_starter(ready->model, ready->unknown_tools);
      model->scheduler = std::move(*scheduler);
      model->token_text = token_text_of(ready->model);
    } else {
      model->error = std::move(scheduler).error();
    }
    model->came.notify_all();
  });
  while (true) {
    {
      std::unique_lock lock(work.model->mutex);
      work.model->came.wait_for(lock, kTick, [&] { return work.model->scheduler || work.model->error; });
      if (work.model->error) return forward(*work.model->error);
      if (work.model->scheduler) return {};
    }
    const bool is_cancelled = status_of(work.id) == "cancelling";
    const std::lock_guard lock(mutex_);
    if (stopping_ || is_cancelled) return fail(ErrorKind::kCancelled, "The batch was cancelled.");
  }
}

// Answers become one file of the store, errors another; a file without a line is none.
Result<void> Batches::keep_answers(Work& work) {
  PrivateFolder& folder = files_.folder();
  if (const std::string status = status_of(work.id); status == "in_progress")
    change(work.id, {{"status", "finalizing"}, {"finalizing_at", std::time(nullptr)}});
  auto reader = openai::LineReader::open(folder.path_of(work_name(work.id)));
  if (!reader) return {};  // nothing was begun
  struct Part {
    const char* name;
    const char* field;
    uint64_t lines = 0;
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file = {nullptr, nullptr};
  };
  Part parts[] = {{.name = "output", .field = "output_file_id"}, {.name = "error", .field = "error_file_id"}};
  for (Part& part : parts) {
    const std::string path = folder.path_of(part_name(work.id, part.name));
    part.file = {open_stdio(path, "wb"), std::fclose};
    if (!part.file) return fail(ErrorKind::kIo, "Cannot write to %s.", path.c_str());
  }
  while (true) {
    DP_TRY(const auto line, reader->next());
    if (!line) break;
    DP_TRY(const openai::WrittenLine written, openai::parse_written_line(line->text));
    Part& part = parts[written.error_code.empty() ? 0 : 1];
    ++part.lines;
    std::fwrite(line->text.data(), 1, line->text.size(), part.file.get());
    std::fputc('\n', part.file.get());
  }
  Json fields = {{"request_counts", counts_json(work.lines, parts[0].lines, parts[1].lines)}};
  for (Part& part : parts) {
    const std::string name = part_name(work.id, part.name);
    if (std::fflush(part.file.get()) != 0 || std::ferror(part.file.get()) != 0)
      return fail(ErrorKind::kIo, "Cannot write to %s.", folder.path_of(name).c_str());
    if (part.lines == 0) {
      folder.remove(name);
      continue;
    }
    DP_TRY(const StoredFile file, files_.adopt(name, name + ".jsonl", "batch_output"));
    fields[part.field] = file.id;
  }
  change(work.id, fields);
  folder.remove(work_name(work.id));
  return {};
}

void Batches::fail_batch(const std::string& id, const char* code, const Error& error) {
  log(LogLevel::kWarning, "Batch %s: %s", id.c_str(), error.message().c_str());
  Json item = {{"code", code}, {"message", error.sentence()}, {"line", nullptr}, {"param", nullptr}};
  change(id, {{"status", "failed"},
              {"failed_at", std::time(nullptr)},
              {"errors", {{"object", "list"}, {"data", Json::array({std::move(item)})}}}});
}

void Batches::finish_batch(const std::string& id) {
  const bool is_cancelled = status_of(id) == "cancelling";
  change(id, {{"status", is_cancelled ? "cancelled" : "completed"},
              {is_cancelled ? "cancelled_at" : "completed_at", std::time(nullptr)}});
}

}  // namespace doppler::server
