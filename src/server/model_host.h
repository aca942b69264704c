// One model of the server. A thread of its own loads it on demand and does all its work besides the GPU's: templates,
// tokens, the text of its streams. So hundreds of streams need no thread each, and a large request to one model does
// not hold up another model or the event loop.
// Read next: models.h (several hosts), generation.h (what runs here).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "doppler/scheduler.h"
#include "server/model_facts.h"
#include "server/start_chat.h"
#include "server/warm_up.h"
#include "server/worker.h"

namespace doppler::server {

struct ModelSource {
  std::string name;  // the name that requests use
  std::string path;  // shown; the loader knows what to load
  std::function<Result<Model>(const ProgressCallback&)> load;
  std::function<Result<ModelFacts>()> facts;  // opens its files, in milliseconds
  bool is_pinned = false;                     // never unloaded
  std::vector<AdapterFile> adapters = {};     // each has the name that requests use
  UnknownTools unknown_tools = UnknownTools::kTold;
  bool warms_up = true;  // its kernels run once before it is ready
  uint32_t places = 1;   // sequences that are decoded together
};

enum class ModelState : uint8_t { kUnloaded, kLoading, kWarming, kReady, kUnloading, kFailed };
const char* model_state_name(ModelState state);

// A model that is there, for the host's thread.
struct ReadyModel {
  std::string name;  // by which requests ask for it
  Model model;
  std::optional<Scheduler> scheduler;  // none: it gives embeddings or scores
  UnknownTools unknown_tools = UnknownTools::kTold;
  bool has_told_of_tools = false;  // the log has it

  // start_chat() of this model; the log says once that its template knows no tools.
  Result<batch::ChatStart> start(const openai::ChatFields& chat, const Grammar& grammar);
};

class ModelHost {
 public:
  // `on_idle`: called on any thread when its last request ended and when it was unloaded.
  ModelHost(ModelSource source, std::function<void()> on_idle);
  ~ModelHost();

  const ModelSource& source() const { return source_; }
  ModelState state() const { return state_; }
  std::string stage() const;              // "weights 40 %" while it loads, else empty
  std::optional<ModelInfo> info() const;  // once it was loaded
  ModelFacts facts();                     // empty if its files cannot be read, which the log says
  SchedulerLoad load_now();               // zeros while it is not loaded; its requests are those of clients
  uint32_t active() const { return active_; }
  uint32_t devices() const { return devices_; }  // that it is loaded on; 1 before
  std::chrono::steady_clock::time_point last_used() const;

  // A request holds a Use from admission to its end. The host outlives its uses.
  class Use {
   public:
    explicit Use(ModelHost& host);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ModelHost& host() { return host_; }

   private:
    ModelHost& host_;
  };

  // The rest is called on any thread and done on the host's, in order.
  void load();
  void unload();
  // Calls `work` with null and an error if the model could not be loaded.
  void ask(std::function<void(ReadyModel*, const Error*)> work);
  // The thread. It may outlive the host, then it does nothing any more.
  const std::shared_ptr<Worker>& worker() const { return worker_; }

  // On the host's thread: what lives until drop() or the host's end.
  void keep(std::shared_ptr<void> item) { kept_.insert(std::move(item)); }
  void drop(const std::shared_ptr<void>& item) { kept_.erase(item); }

 private:
  const ModelSource source_;
  const std::function<void()> on_idle_;
  std::atomic<ModelState> state_ = ModelState::kUnloaded;
  std::atomic<uint32_t> active_ = 0, devices_ = 1;
  std::atomic<bool> stopping_ = false;  // a load under way is given up
  std::mutex facts_mutex_;
  std::optional<ModelFacts> facts_;  // guarded by it
  mutable std::mutex mutex_;         // guards the next four
  std::string stage_;
  std::optional<ModelInfo> info_;
  std::shared_ptr<Scheduler> scheduler_;  // for load_now()
  std::chrono::steady_clock::time_point last_used_;
  void warm_up();
  void go_on_warming();
  // Only the host's thread uses these, except worker_.
  std::optional<ReadyModel> ready_;
  std::shared_ptr<MoreWarmUps> warming_;
  std::optional<Error> error_;
  std::set<std::shared_ptr<void>> kept_;
  const std::shared_ptr<Worker> worker_ = std::make_shared<Worker>();
};

}  // namespace doppler::server
