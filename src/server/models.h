// The models of a server by name. A model is loaded when a request asks for it. If only so many may be loaded, the one
// unused for longest makes room once it is idle, and requests wait for that.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/model_host.h"

namespace doppler::server {

class Models {
 public:
  // `most_loaded`: 0: all models. Requests without a model get the first one; with `any_name` so do those for an
  // unknown model.
  Models(std::vector<ModelSource> sources, uint32_t most_loaded, bool any_name);
  ~Models();

  const std::vector<std::shared_ptr<ModelHost>>& all() const { return hosts_; }
  // Null: there is no such model.
  std::shared_ptr<ModelHost> find(std::string_view name) const;
  // Loads the model when there is room. Work for it waits until then.
  void want(const std::shared_ptr<ModelHost>& host);
  // Calls `work` on the model's thread once it is loaded or cannot be.
  void ask(std::shared_ptr<ModelHost> host, std::function<void(ReadyModel*, const Error*)> work);

 private:
  struct Waiting {
    std::shared_ptr<ModelHost> host;
    std::function<void(ReadyModel*, const Error*)> work;
  };
  void make_room();  // under the mutex
  bool has_begun(const ModelHost& host) const;

  const bool any_name_;
  const uint32_t most_loaded_;
  std::vector<std::shared_ptr<ModelHost>> hosts_;
  std::mutex mutex_;  // for the field below
  std::vector<Waiting> waiting_;
};

}  // namespace doppler::server
