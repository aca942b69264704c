// Batches of OpenAI's API: files of requests that are answered beside those who wait for theirs, one batch after the
// other. A batch's record is the object that the API tells. Batches that were under way when the server ended go on
// when it begins again with the same folder.
// Read next: batch/batch_run.h (the work).
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "batch/batch_run.h"
#include "server/files/file_store.h"
#include "server/models.h"

namespace doppler::server {

struct BatchOptions {
  GenerateOptions defaults;  // if a request does not say
  uint32_t in_flight = 1;    // requests that the model has at a time
};

class Batches {
 public:
  static constexpr size_t kMostKept = 1000;  // the oldest ended ones are forgotten

  // All outlive it.
  Batches(FileStore& files, Models& models, BatchOptions options);
  ~Batches();  // what is under way ends without its line

  // `body`: {"input_file_id", "endpoint", "completion_window", "metadata"}. Errors: kInvalidInput, naming the field;
  // kOutOfMemory: there is no room for answers, or for another batch.
  Result<Json> create(const Json& body);
  std::optional<Json> get(const std::string& id) const;
  std::vector<Json> list() const;  // the oldest first
  // Requests under way end without answers; finished answers stay. No value: there is no such batch.
  std::optional<Json> cancel(const std::string& id);

 private:
  struct Work;  // one batch on its way

  void run();
  void answer(const std::string& id);
  Result<batch::BatchTotals> answer_lines(Work& work);
  Result<void> find_model(Work& work);
  Result<void> keep_answers(Work& work);
  void fail_batch(const std::string& id, const char* code, const Error& error);
  void finish_batch(const std::string& id);
  // The record changes, in the folder too. False: there is no such batch.
  bool change(const std::string& id, const Json& fields);
  std::string status_of(const std::string& id) const;
  void forget_oldest();  // under the mutex

  FileStore& files_;
  Models& models_;
  const BatchOptions options_;
  mutable std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::map<std::string, Json> batches_;  // ids are in the order of time
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace doppler::server
