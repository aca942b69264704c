// A model as the layers above see it, whatever its file format: named tensors, where their bytes lie, and the
// format's own description (GGUF metadata, or config.json). Opening reads headers and tables only, never
// weights. Read next: gguf/gguf.h, safetensors/safetensors.h; quant/repack.h for what happens to the bytes.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dtype.h"
#include "base/json_fwd.h"
#include "base/result.h"
#include "base/task.h"
#include "formats/gguf/gguf.h"
#include "formats/rdrr/rdrr_options.h"
#include "formats/source.h"

namespace doppler::formats {

struct RdrrManifest;  // rdrr/manifest.h

struct TensorInfo {
  std::string name;
  DType type;
  std::vector<uint64_t> shape;  // outermost first: [n, k]
  uint32_t file;                // number for Checkpoint::file()
  uint64_t offset, bytes;       // in that file; checked to lie inside it
};

inline constexpr uint64_t kMaxTextBytes = 64 << 20;  // tokenizer.json of a 262k vocabulary has 33 MB

class Checkpoint {
 public:
  // Whose names, shapes and description the tensors have; an RDRR model has those of what it was made from.
  enum class Kind { kGguf, kHuggingFace };

  ~Checkpoint();

  Kind kind() const { return kind_; }
  const std::string& name() const { return files_->root(); }  // for messages
  std::span<const TensorInfo> tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view tensor) const;  // null: there is none

  const GgufFile* gguf() const { return gguf_ ? &*gguf_ : nullptr; }  // null unless Kind::kGguf
  const Json& config() const { return *config_; }                     // null value unless Kind::kHuggingFace

  const RdrrManifest* rdrr() const { return rdrr_.get(); }  // null unless the files are an RDRR folder

  // The header of a vision tower's GGUF file (projector/projector.h), if this checkpoint has its tensors too: an RDRR
  // folder that was made from both files, or after join_projector(). Null otherwise.
  const GgufFile* projector() const { return projector_ ? &*projector_ : nullptr; }

  size_t file_count() const { return sources_.size(); }
  ByteSource& file(uint32_t number) const { return *sources_[number]; }
  FileSet& files() const { return *files_; }

  // The tensor's bytes in the mapping, or an empty span when its file is not mapped. Those of an RDRR model are
  // verified only after file(tensor.file).ready().
  std::span<const uint8_t> mapped(const TensorInfo& tensor) const;
  // A copy of the tensor's bytes: for small tensors (norms, biases, rope factors).
  Task<Result<std::vector<uint8_t>>> read_tensor(const TensorInfo& tensor) const;
  // A text file of the folder, such as tokenizer.json or chat_template.jinja; empty when there is none.
  Task<Result<std::optional<std::string>>> read_text(std::string file_name,
                                                     uint64_t max_bytes = kMaxTextBytes) const;
  // The same, of the folder that the tower's file was in.
  Task<Result<std::optional<std::string>>> read_projector_text(std::string file_name) const;

 private:
  friend class CheckpointOpener;
  friend class CheckpointChanges;
  Checkpoint();

  Kind kind_ = Kind::kGguf;
  std::unique_ptr<FileSet> files_;
  std::unique_ptr<const RdrrManifest> rdrr_;  // sources_ may refer to it
  bool verify_ = false;                       // its assets
  std::vector<std::unique_ptr<ByteSource>> sources_;
  std::optional<GgufFile> gguf_, projector_;
  std::unique_ptr<FileSet> projector_files_;  // null: in files_
  std::unique_ptr<Json> config_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, uint32_t> index_;  // into tensors_, which no longer changes
};

// Recognises the kind by content: a GGUF file (also the first of a split one), a folder with config.json and
// safetensors, a lone .safetensors with config.json beside it, a folder with one .gguf, an RDRR folder. Anything
// else is an error that says what it looks like. `rdrr` is only for RDRR: other formats have no hashes.
Task<Result<std::unique_ptr<Checkpoint>>> open_checkpoint(std::unique_ptr<FileSet> files,
                                                          RdrrOptions rdrr = {});

}  // namespace doppler::formats
