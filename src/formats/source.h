// The origin of a model's bytes: FileSet is its folder (or its one file and the neighbours), ByteSource one readable
// file. Natively files are memory-mapped (file_set_native.h). A browser reads ranges over HTTP, and
// synth/synthetic_source.h makes bytes up. No layer above may assume a mapping: `mapped()` may be empty. Read next:
// checkpoint.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"

namespace doppler::formats {

// A part of a file that the host can stream to the GPU by itself.
struct StreamPiece {
  uint32_t stream;  // stream_id() of the file
  uint64_t offset, bytes;
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  virtual const std::string& name() const = 0;  // for messages: a path or an address
  virtual uint64_t size() const = 0;
  // All bytes, valid as long as this object, if the file is memory-mapped; otherwise empty.
  virtual std::span<const uint8_t> mapped() const { return {}; }
  // Exactly `count` bytes, or an error. For headers and tables; weights go through mapped() or the host's own
  // upload path, never as a whole through here.
  virtual Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) = 0;
  // The number under which the host can stream this file straight to the GPU (browser); empty natively.
  virtual std::optional<uint32_t> stream_id() const { return std::nullopt; }
  // The pieces to stream, in order, for these bytes; empty if stream_id() would be. One file gives one piece.
  virtual Task<Result<std::vector<StreamPiece>>> stream_pieces(uint64_t offset, uint64_t count) const {
    std::vector<StreamPiece> pieces;
    if (const auto stream = stream_id()) pieces.push_back({*stream, offset, count});
    co_return pieces;
  }
  // Waits until these bytes of mapped() may be used: a source that verifies its bytes has done so then. Called after
  // their use, it says whether they were there: a file cut meanwhile is an error. read() does both by itself.
  virtual Task<Result<>> ready(uint64_t /*offset*/, uint64_t /*count*/) const { co_return Result<>(); }
  // Hints for a mapping: these bytes will be read once, in order (before), or not again (after).
  virtual void will_read(uint64_t /*offset*/, uint64_t /*count*/) const {}
  virtual void done_with(uint64_t /*offset*/, uint64_t /*count*/) const {}
};

struct JoinedPart {
  std::string file;  // a plain name
  uint64_t bytes;
};
struct JoinedFiles {
  std::unique_ptr<ByteSource>
      source;  // mapped(), end to end; null: this place or these sizes cannot be mapped so
  std::vector<std::string>
      identities;  // of each file: a text that changes when the file is written or replaced
};

class FileSet {
 public:
  virtual ~FileSet() = default;

  virtual const std::string& root() const = 0;  // what the user named, for messages
  // The name of the one file that was given, to pass to open(); empty when a folder was given.
  virtual const std::string& main_file() const = 0;
  // The names in the folder, as far as the place can tell without being asked for each (HTTP cannot: empty).
  virtual std::vector<std::string> list() const { return {}; }
  // Opens a file by its name in the folder. A null pointer means that there is none; an error that it could
  // not be read. Names that are not is_name_in_folder() are refused.
  virtual Task<Result<std::unique_ptr<ByteSource>>> open(std::string name) = 0;
  // Several files as one source. Every part but the last has the size of the first, the last at most that.
  // Errors: a file is missing or has another size.
  virtual Result<JoinedFiles> map_joined(std::span<const JoinedPart> /*parts*/) { return JoinedFiles(); }
};

// A byte count as this host's size type. WebAssembly has 32 bits: check_range() refuses reads above its
// limit, and counts of bytes that are already in memory always fit.
constexpr size_t host_size(uint64_t count) { return static_cast<size_t>(count); }

// False for names that could leave the folder: empty, absolute, with '/', '\\', NUL or equal to "." or "..".
bool is_plain_file_name(std::string_view name);

// A plain name, or one in a folder beside: "1_Pooling/config.json".
bool is_name_in_folder(std::string_view name);

// The sentence for a read outside a file, or of more than this host can hold at once; shared by the
// implementations of ByteSource::read.
Result<> check_range(const ByteSource& source, uint64_t offset, uint64_t count);

}  // namespace doppler::formats
