// The adapters of a server's models by name: which there are, and which a request has. The models themselves load them
// (Model::load_adapter) when a request first asks for one. Any thread may call.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "openai/served_request.h"

namespace doppler::server {

struct ServedAdapter {
  std::string name, path, model;  // model: that it is of
  float scale = 1;                // besides its own
  float standing = 0;             // of requests that say nothing of adapters; 0: they do not have it
};

class ServedAdapters {
 public:
  void add(ServedAdapter adapter);  // or it takes the place of one of this name
  bool remove(const std::string& name);
  std::optional<ServedAdapter> find(std::string_view name) const;
  std::vector<ServedAdapter> of_model(std::string_view model) const;  // in the order of their ids, from 0 on
  // By id: llama.cpp's POST /lora-adapters. Those that are not named get 0. Error: there is no such id.
  Result<void> set_standing(const std::string& model, const std::vector<openai::LoraScale>& scales);
  // Sets which adapters the request to that model has: by "lora", by "model", or the standing ones.
  Result<void> choose(const std::string& model, openai::ServedRequest& request) const;

 private:
  mutable std::mutex mutex_;
  std::vector<ServedAdapter> adapters_;
};

}  // namespace doppler::server
