// The adapters of a server's models by name, and the choice for each request. The models load them
// (Model::load_adapter) when a request first asks for one. Any thread may call.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "openai/served_request.h"

namespace doppler::server {

struct ServedAdapter {
  std::string name, path, model;  // model: the name of its model
  float scale = 1;                // times its own scale
  float standing = 0;             // the scale for requests that name no adapters; 0: they do not have it
};

class ServedAdapters {
 public:
  void add(ServedAdapter adapter);  // replaces an adapter of the same name
  bool remove(const std::string& name);
  std::optional<ServedAdapter> find(std::string_view name) const;
  std::vector<ServedAdapter> of_model(std::string_view model) const;  // in the order of their ids, from 0 on
  // Sets the standing scales by id, for llama.cpp's POST /lora-adapters. Ids that are not named get 0. Error: there is
  // no such id.
  Result<void> set_standing(const std::string& model, const std::vector<openai::LoraScale>& scales);
  // Sets the adapters of a request to that model: by "lora", by "model", or the standing ones.
  Result<void> choose(const std::string& model, openai::ServedRequest& request) const;

 private:
  mutable std::mutex mutex_;
  std::vector<ServedAdapter> adapters_;
};

}  // namespace doppler::server
