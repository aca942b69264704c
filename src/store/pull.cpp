#include "store/pull.h"

#include <algorithm>

#include "base/text.h"
#include "formats/recognise.h"
#include "store/download.h"
#include "store/store_writer.h"
#include "store/url.h"

namespace doppler::store {
namespace {

constexpr size_t kCopyBytes = 4 << 20;

class Pull {
 public:
  Pull(const DownloadList& list, const ModelStore& store, const PullOptions& options, Web& web)
      : list_(list), store_(store), options_(options), web_(web) {}

  Result<Pulled> run();

 private:
  Result<Pulled> run_with(StoreWriter& writer);
  Result<void> check_disk() const;
  Result<StoredFile> fetch(const StoreWriter& writer, const ListedFile& listed);
  Result<StoredFile> copy(const StoreWriter& writer, const ListedFile& listed);
  Result<void> check_is_model(const std::string& path) const;
  void show(const ListedFile& file, uint64_t done_of_file, uint64_t total_of_file) const;

  const DownloadList& list_;
  const ModelStore& store_;
  const PullOptions& options_;
  Web& web_;
  Pulled pulled_;
  uint64_t done_before_ = 0;  // bytes of the files before this one
};

// For all files together; each download checks again for its missing bytes.
Result<void> Pull::check_disk() const {
  uint64_t needed = 0;
  for (const ListedFile& file : list_.files) needed += file.bytes.value_or(0);
  const auto unfinished = read_unfinished(store_.folder(), list_.name);
  const uint64_t there = unfinished ? std::min(needed, unfinished->bytes_done) : 0;
  return check_space(store_.folder(), needed - there, list_.source);
}

void Pull::show(const ListedFile& file, uint64_t done_of_file, uint64_t total_of_file) const {
  if (!options_.on_progress) return;
  PullProgress progress{.name = list_.name,
                        .file = file.file,
                        .done = done_before_ + done_of_file,
                        .resumed = pulled_.resumed_bytes};
  bool is_known = true;
  for (const ListedFile& listed : list_.files) {
    is_known = is_known && (listed.bytes || list_.files.size() == 1);
    progress.total += listed.bytes ? *listed.bytes : total_of_file;
  }
  if (!is_known) progress.total = 0;
  options_.on_progress(progress);
}

Result<StoredFile> Pull::fetch(const StoreWriter& writer, const ListedFile& listed) {
  const DownloadJob job{.url = listed.from,
                        .path = writer.path_of(listed.file),
                        .bytes = listed.bytes,
                        .sha256 = listed.sha256};
  const DownloadOptions options{
      .connections = options_.connections,
      .peers = options_.peers,
      .on_progress = [&](uint64_t done, uint64_t total) { show(listed, done, total); },
      .on_notice = options_.on_notice,
  };
  DP_TRY(const Downloaded done, download(web_, job, options));
  pulled_.resumed_bytes += done.resumed_bytes;
  pulled_.received_bytes += done.received_bytes;
  pulled_.peer_bytes += done.peer_bytes;
  return StoredFile{
      .file = listed.file, .bytes = done.bytes, .sha256 = done.sha256, .is_verified = done.is_verified};
}

Result<StoredFile> Pull::copy(const StoreWriter& writer, const ListedFile& listed) {
  const std::string path = writer.path_of(listed.file) + kUnfinishedSuffix;
  DP_TRY(const File from, File::open(listed.from));
  DP_TRY(File to, File::open(path, {.writes = true, .makes = true, .empties = true, .follows_links = false}));
  DP_TRY(const uint64_t bytes, from.size());
  std::vector<uint8_t> buffer(kCopyBytes);
  Sha256Hasher hasher;
  uint64_t done = 0;
  for (;;) {
    DP_CHECK(check_not_stopped(options_.web.stop));
    DP_TRY(const size_t count, from.read_at(buffer, done));
    if (count == 0) break;
    const std::span<const uint8_t> some = std::span(buffer).first(count);
    DP_CHECK(to.write_at(some, done));
    hasher.update(some);
    done += count;
    show(listed, done, bytes);
  }
  DP_CHECK(to.flush());
  const StoredFile stored{.file = listed.file,
                          .bytes = done,
                          .sha256 = hasher.finish(),
                          .is_verified = listed.sha256.has_value()};
  if (listed.sha256 && *listed.sha256 != stored.sha256) {
    DP_CHECK(remove_tree(path));
    return fail(ErrorKind::kInvalidInput, "The SHA-256 of %s is %s, but it should be %s.",
                listed.from.c_str(), sha256_hex(stored.sha256).c_str(), sha256_hex(*listed.sha256).c_str());
  }
  return stored;
}

// An address may give anything; only what begins like a model is stored.
Result<void> Pull::check_is_model(const std::string& path) const {
  if (list_.kind != "gguf") return {};
  DP_TRY(const File file, File::open(path));
  DP_TRY(const uint64_t size, file.size());
  std::vector<uint8_t> first(formats::kRecogniseBytes);
  DP_TRY(const size_t count, file.read_at(first, 0));
  const formats::Recognised found = formats::recognise(std::span(first).first(count), size);
  if (found.look == formats::FileLook::kGguf) return {};
  return fail(ErrorKind::kInvalidInput, "%s is no GGUF file%s%s; nothing was stored.", list_.source.c_str(),
              found.reason.empty() ? "" : ", but ", found.reason.c_str());
}

Result<Pulled> Pull::run() {
  DP_TRY(StoreWriter writer, StoreWriter::open(store_, list_));
  auto done = run_with(writer);
  if (done) return done;
  // A download without a byte has nothing to resume, so it begins anew.
  const auto left = read_unfinished(store_.folder(), list_.name);
  if (left && left->bytes_done == 0) DP_CHECK(writer.discard());
  return done;
}

Result<Pulled> Pull::run_with(StoreWriter& writer) {
  DP_CHECK(check_disk());
  std::vector<StoredFile> files;
  for (const ListedFile& listed : list_.files) {
    auto stored = list_.is_local ? copy(writer, listed) : fetch(writer, listed);
    if (!stored) {
      return forward(list_.files.size() == 1 ? std::move(stored).error()
                                             : std::move(stored).error().add_while("fetching " + listed.file +
                                                                                   " of " + list_.source));
    }
    done_before_ += stored->bytes;
    files.push_back(std::move(*stored));
  }
  if (auto good = check_is_model(writer.path_of(list_.files[0].file) + kUnfinishedSuffix); !good) {
    DP_CHECK(writer.discard());
    return forward(std::move(good).error());
  }
  DP_TRY(pulled_.model, writer.finish(std::move(files), options_.replace));
  return std::move(pulled_);
}

// Earlier versions took fewer files of a repository.
std::string missing_files(const DownloadList& list, const Record& record) {
  std::string out;
  for (const ListedFile& listed : list.files) {
    if (std::ranges::find(record.files, listed.file, &StoredFile::file) != record.files.end()) continue;
    out += (out.empty() ? "" : ", ") + printable(listed.file);
  }
  return out;
}

}  // namespace

Result<Pulled> pull(const std::string& source, const ModelStore& store, const PullOptions& options) {
  Web web(options.web);
  DP_TRY(const DownloadList list, list_downloads(source, options.list, store, web));
  return pull_listed(list, store, options, web);
}

Result<Pulled> pull_listed(const DownloadList& list, const ModelStore& store, const PullOptions& options,
                           Web& web) {
  DP_CHECK(make_folders(store.folder()));
  DP_TRY(const bool was_finished_now, finish_remains(store, list.name));
  if (store.has(list.name) && (!options.replace || was_finished_now)) {
    DP_TRY(StoredModel model, store.find(list.name));
    if (model.record.source != list.source) {
      return fail(ErrorKind::kInvalidInput,
                  "There is a model \"%s\" already, from %s; --name gives this one another name, --replace "
                  "its place.",
                  list.name.c_str(), printable(model.record.source, 300).c_str());
    }
    if (!list.revision.empty() && model.record.revision != list.revision && options.on_notice) {
      options.on_notice(
          format_text("%s is stored as of commit %.12s, the source is at %.12s now; --replace fetches it.",
                      list.name.c_str(), model.record.revision.c_str(), list.revision.c_str()));
    }
    if (const std::string missing = missing_files(list, model.record);
        !missing.empty() && options.on_notice) {
      options.on_notice(
          format_text("%s was stored without %s, which its source has; --replace fetches it whole.",
                      list.name.c_str(), missing.c_str()));
    }
    return Pulled{.model = std::move(model), .was_there = true};
  }
  return Pull(list, store, options, web).run();
}

}  // namespace doppler::store
