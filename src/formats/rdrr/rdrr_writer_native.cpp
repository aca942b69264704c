// rdrr_writer.h over the system's files. Order of what reaches the disk, so that a crash at any moment can be resumed:
// a shard's bytes, its name, then its line in progress.txt; at the end the manifest, then the folder's name.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/folders.h"
#include "base/mapped_file.h"
#include "formats/file_sink_native.h"
#include "formats/rdrr/integrity.h"
#include "formats/rdrr/rdrr_writer.h"
#include "formats/rdrr/write_progress_native.h"
#include "formats/source.h"

namespace doppler::formats {
namespace {

using Ull = unsigned long long;

Unexpected io_error(const std::string& path) {
  return fail(ErrorKind::kIo, "Cannot write %s: %s.", path.c_str(), std::strerror(errno));
}

Result<> keep_names_of(const std::string& folder) {
  return flush_folder(folder) ? Result<>() : io_error(folder);
}

// The folder's name without a slash at its end.
std::string tidy(std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder;
}

// Names go through JSON, which holds UTF-8 only.
Result<> check_names(const RdrrManifest& outline) {
  for (const RdrrTensor& tensor : outline.tensors) {
    const auto back = parse_json(to_text(Json(tensor.name)), "a name");
    if (back && back->is_string() && back->text() == tensor.name) continue;
    return fail(ErrorKind::kInvalidInput, "The name of tensor \"%s\" is not UTF-8, as RDRR needs.",
                printable(tensor.name).c_str());
  }
  return {};
}

// True if `folder` may be replaced: it must be an RDRR model and hold nothing else.
Result<> check_replaceable(const std::string& folder) {
  const std::string path = folder + "/" + kRdrrManifestName;
  DP_TRY(const MappedFile file, MappedFile::open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  DP_TRY(const RdrrParsed parsed, parse_rdrr_manifest(text, path));
  DP_TRY(const std::vector<std::string> others, files_beside_rdrr_model(folder, parsed.manifest));
  if (others.empty()) return {};
  return fail(ErrorKind::kInvalidInput,
              "%s is not replaced: it also holds \"%s\", which is no part of a model.", folder.c_str(),
              printable(others[0]).c_str());
}

// The working folder is emptied of what cannot be continued: it must be an interrupted run's, or a model's that
// was killed just before it got its name.
Result<> check_working_folder(const std::string& part) {
  if (!is_there(part)) return {};
  DP_TRY(const std::vector<std::string> names, names_in_folder(part));
  if (names.empty() || std::ranges::find(names, kWriteProgressName) != names.end()) return {};
  if (check_replaceable(part)) return {};
  return fail(ErrorKind::kInvalidInput,
              "%s holds files of another kind than an interrupted run leaves; move it away.", part.c_str());
}

}  // namespace

struct RdrrWriter::State {
  std::string folder, part;
  RdrrWriterOptions options;
  RdrrManifest manifest;
  std::unique_ptr<WriteProgress> progress;

  std::unique_ptr<FileSink> shard;  // being written; null: no shard
  Sha256Hasher hasher;
  uint64_t resumed = 0;      // bytes of all shards that were there at the beginning
  uint64_t position = 0;     // where the next byte goes, counted through all shards
  uint64_t passed_over = 0;  // bytes of the open tensor that need not be written again
  uint64_t left = 0;         // bytes of the open tensor still to come
  size_t next = 0;           // tensor to be begun, or (if open) being written
  bool open = false;

  uint64_t begin_of(const RdrrTensor& tensor) const {
    return tensor.shard * manifest.shard_bytes + tensor.offset;
  }
  uint64_t total() const {
    const RdrrTensor& last = manifest.tensors.back();
    return begin_of(last) + last.bytes;
  }

  // Appends to the shards, beginning and ending them as needed.
  Result<> put(std::span<const uint8_t> bytes) {
    while (!bytes.empty()) {
      const size_t number = position / manifest.shard_bytes;
      if (!shard) {
        DP_TRY(shard, FileSink::create(part + "/" + rdrr_shard_name(number)));
      }
      const uint64_t room = manifest.shard_bytes - position % manifest.shard_bytes;
      const auto piece = bytes.first(std::min<uint64_t>(room, bytes.size()));
      hasher.update(piece);
      DP_CHECK(shard->write(piece));
      position += piece.size();
      bytes = bytes.subspan(piece.size());
      if (position % manifest.shard_bytes == 0 || position == total()) DP_CHECK(end_shard(number));
    }
    return {};
  }

  Result<> end_shard(size_t number) {
    DP_CHECK(shard->commit());
    shard.reset();
    DP_CHECK(keep_names_of(part));
    manifest.shards[number].sha256 = hasher.finish();
    return progress->add(manifest.shards[number].sha256);
  }

  Result<> put_zeros(uint64_t count) {
    constexpr uint8_t kZeros[kRdrrAlignment] = {};
    return put(std::span(kZeros).first(count));
  }

  Result<> rename_into_place() {
    if (!is_there(folder)) {
      if (!rename_path(part, folder)) return io_error(folder);
      return keep_names_of(parent_path(folder));
    }
    if (!options.replace)
      return fail(ErrorKind::kIo, "%s exists by now; it is not replaced.", folder.c_str());
    DP_CHECK(check_replaceable(folder));
    if (!exchange_folders(part, folder)) {
      return fail(ErrorKind::kIo, "Cannot replace %s: %s. The new model is complete in %s.", folder.c_str(),
                  std::strerror(errno), part.c_str());
    }
    DP_CHECK(keep_names_of(parent_path(folder)));
    return discard_rdrr_remains(folder);  // the old one, now under the working name
  }
};

// ---- RdrrWriter

RdrrWriter::RdrrWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
RdrrWriter::~RdrrWriter() = default;

Result<std::unique_ptr<RdrrWriter>> RdrrWriter::open(const std::string& folder, RdrrManifest outline,
                                                     RdrrWriterOptions options) {
  auto state = std::make_unique<State>();
  State& s = *state;
  s.folder = tidy(folder);
  s.part = s.folder + ".part";
  s.options = std::move(options);
  s.manifest = std::move(outline);
  if (s.manifest.tensors.empty()) return fail(ErrorKind::kInvalidInput, "A model needs at least one tensor.");
  DP_CHECK(check_names(s.manifest));
  DP_CHECK(rdrr_lay_out(s.manifest));
  s.manifest.assets.clear();

  if (is_there(s.folder)) {
    if (!s.options.replace) return fail(ErrorKind::kInvalidInput, "%s exists already.", s.folder.c_str());
    DP_CHECK(check_replaceable(s.folder));
  }
  DP_CHECK(check_working_folder(s.part));
  if (!make_folders(s.part))
    return fail(ErrorKind::kIo, "Cannot make %s: %s.", s.part.c_str(), std::strerror(errno));
  DP_TRY(s.progress, WriteProgress::open(s.part, s.manifest, s.options.fingerprint));
  const std::vector<Sha256>& done = s.progress->done();
  for (size_t i = 0; i < done.size(); ++i) {
    s.manifest.shards[i].sha256 = done[i];
    s.resumed += s.manifest.shards[i].bytes;
  }
  s.position = s.resumed;
  std::unique_ptr<RdrrWriter> writer(new RdrrWriter(std::move(state)));
  s.next = writer->first_incomplete();
  return writer;
}

RdrrManifest& RdrrWriter::manifest() { return state_->manifest; }
const std::string& RdrrWriter::working_folder() const { return state_->part; }
uint64_t RdrrWriter::resumed_bytes() const { return state_->resumed; }

bool RdrrWriter::complete(size_t tensor) const {
  const RdrrTensor& t = state_->manifest.tensors[tensor];
  const uint64_t in_shards =
      state_->position == state_->total()
          ? state_->position
          : state_->position / state_->manifest.shard_bytes * state_->manifest.shard_bytes;
  return state_->begin_of(t) + t.bytes <= in_shards;
}

size_t RdrrWriter::first_incomplete() const {
  size_t i = 0;
  while (i < state_->manifest.tensors.size() && complete(i)) ++i;
  return i;
}

Result<> RdrrWriter::begin_tensor(size_t tensor) {
  State& s = *state_;
  if (s.open || tensor != s.next || tensor >= s.manifest.tensors.size()) {
    return fail(ErrorKind::kInternal, "Tensor %zu was begun, but %zu is next.", tensor, s.next);
  }
  const RdrrTensor& t = s.manifest.tensors[tensor];
  const uint64_t begin = s.begin_of(t);
  s.left = t.bytes;
  s.passed_over = begin < s.position ? s.position - begin : 0;
  if (begin > s.position) DP_CHECK(s.put_zeros(begin - s.position));
  s.open = true;
  return {};
}

Result<> RdrrWriter::write(std::span<const uint8_t> bytes) {
  State& s = *state_;
  if (!s.open || bytes.size() > s.left) {
    return fail(ErrorKind::kInternal, "Tensor \"%s\" was given more bytes than the %llu it has.",
                s.next < s.manifest.tensors.size() ? printable(s.manifest.tensors[s.next].name).c_str() : "",
                s.next < s.manifest.tensors.size() ? static_cast<Ull>(s.manifest.tensors[s.next].bytes) : 0);
  }
  s.left -= bytes.size();
  const uint64_t skip = std::min<uint64_t>(s.passed_over, bytes.size());
  s.passed_over -= skip;
  return s.put(bytes.subspan(skip));
}

Result<> RdrrWriter::end_tensor() {
  State& s = *state_;
  if (!s.open || s.left != 0) {
    return fail(ErrorKind::kInternal, "Tensor %zu ended although %llu of its bytes are missing.", s.next,
                static_cast<Ull>(s.left));
  }
  s.open = false;
  ++s.next;
  return {};
}

Result<> RdrrWriter::add_asset(const std::string& file, std::span<const uint8_t> bytes) {
  State& s = *state_;
  if (!is_plain_file_name(file) || !is_one_name(file) || bytes.empty()) {
    return fail(ErrorKind::kInvalidInput, "\"%s\" of %zu bytes cannot be an asset.", printable(file).c_str(),
                bytes.size());
  }
  DP_TRY(const std::unique_ptr<FileSink> sink, FileSink::create(s.part + "/" + file));
  DP_CHECK(sink->write(bytes));
  DP_CHECK(sink->commit());
  std::erase_if(s.manifest.assets, [&](const RdrrAsset& other) { return other.file == file; });
  s.manifest.assets.push_back({.file = file, .bytes = bytes.size(), .sha256 = sha256(bytes), .unknown = {}});
  return {};
}

Result<RdrrManifest> RdrrWriter::finish() {
  State& s = *state_;
  if (s.open || s.next != s.manifest.tensors.size()) {
    return fail(ErrorKind::kInternal, "%zu of %zu tensors were written.", s.next, s.manifest.tensors.size());
  }
  DP_CHECK(rewrite_rdrr_manifest(s.part, s.manifest));
  s.manifest.model_sha256 = rdrr_model_sha256(s.manifest);
  DP_CHECK(s.progress->remove());
  DP_CHECK(keep_names_of(s.part));
  DP_CHECK(s.rename_into_place());
  return s.manifest;
}

Result<> discard_rdrr_remains(const std::string& folder) {
  const std::string part = tidy(folder) + ".part";
  if (remove_tree(part)) return {};
  return fail(ErrorKind::kIo, "Cannot remove %s: %s.", part.c_str(), std::strerror(errno));
}

Result<> rewrite_rdrr_manifest(const std::string& folder, RdrrManifest manifest) {
  const std::string path = tidy(folder) + "/" + kRdrrManifestName;
  const std::string text = rdrr_manifest_text(manifest);
  // Whatever is wrong with it must be found now, not by who opens it.
  DP_TRY([[maybe_unused]] const RdrrParsed read_back, parse_rdrr_manifest(text, path));
  DP_TRY(const std::unique_ptr<FileSink> sink, FileSink::create(path));
  DP_CHECK(sink->write(text_bytes(text)));
  DP_CHECK(sink->commit());
  return keep_names_of(tidy(folder));
}

}  // namespace doppler::formats
