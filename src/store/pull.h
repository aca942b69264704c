// `doppler pull` as a function: lists, downloads or copies, checks, puts into the store. docs/design/store.md has its
// promises: an interrupted pull goes on at the byte, and nothing half is ever a model.
#pragma once

#include <functional>
#include <string>

#include "store/download_list.h"
#include "store/model_store.h"
#include "store/piece_source.h"
#include "store/remote.h"

namespace doppler::store {

struct PullProgress {
  std::string name, file;
  uint64_t done = 0, total = 0;  // of all files; total 0: not known
  uint64_t resumed = 0;          // of done: from an earlier run
};

struct PullOptions {
  ListOptions list;
  WebOptions web;
  uint32_t connections = 4;
  PieceSource* peers = nullptr;  // asked first, for files of known hash
  bool replace = false;
  std::function<void(const PullProgress&)> on_progress;
  std::function<void(const std::string& line)> on_notice;
};

struct Pulled {
  StoredModel model;
  bool was_there = false;                          // stored already, nothing was fetched
  uint64_t resumed_bytes = 0, received_bytes = 0;  // received: from the source
  uint64_t peer_bytes = 0;
};

Result<Pulled> pull(const std::string& source, const ModelStore& store, const PullOptions& options);
// pull() with a list that is there already. A file whose `from` is empty comes from the peers.
Result<Pulled> pull_listed(const DownloadList& list, const ModelStore& store, const PullOptions& options,
                           Web& web);

}  // namespace doppler::store
