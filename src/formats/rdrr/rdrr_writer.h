// Makes an RDRR folder, atomically and so that an interrupted run can go on: everything is written to
// "<folder>.part" and renamed at the end. A shard that is complete is hashed, flushed to the disk and never
// written again. Bounded memory; one thread at a time. Not part of the WebAssembly build.
//
//   RdrrManifest outline;  outline.id = ...;  outline.tensors = {name, shape, type, role, layout, source_index ...};
//   DP_TRY(auto writer, RdrrWriter::open(folder, std::move(outline), {.fingerprint = options_and_source}));
//   DP_CHECK(writer->add_asset("tokenizer.json", bytes));
//   for (size_t i = writer->first_incomplete(); i < n; ++i) {
//     DP_CHECK(writer->begin_tensor(i));  DP_CHECK(writer->write(bytes)); ...  DP_CHECK(writer->end_tensor());
//   }
//   DP_TRY(const RdrrManifest manifest, writer->finish());
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/rdrr/manifest.h"

namespace doppler::formats {

struct RdrrWriterOptions {
  // Whatever decides the tensors' bytes, as text: source file, its size and time, quantisation options. An
  // interrupted run is continued only if this and the layout are the same; otherwise it is begun anew.
  std::string fingerprint;
  bool replace = false;  // an existing folder of that name is replaced at the end; otherwise it is an error
};

class RdrrWriter {
 public:
  // `outline` needs everything but what the writer finds out: places, sizes, hashes, assets. Errors: the folder
  // exists, cannot be made, another process is writing it, the outline is wrong (a sentence).
  static Result<std::unique_ptr<RdrrWriter>> open(const std::string& folder, RdrrManifest outline,
                                                  RdrrWriterOptions options);
  ~RdrrWriter();  // without finish(): keeps what is complete, for a later run
  RdrrWriter(const RdrrWriter&) = delete;
  RdrrWriter& operator=(const RdrrWriter&) = delete;

  // The outline with every tensor's place. Members other than tensors, shards, assets and hashes may be changed
  // until finish() (self test, kernel hints).
  RdrrManifest& manifest();
  const std::string& working_folder() const;  // "<folder>.part"

  // Bytes of tensors that an interrupted run has left complete; 0: begun anew.
  uint64_t resumed_bytes() const;
  bool complete(size_t tensor) const;  // all its bytes are on the disk and hashed
  size_t first_incomplete() const;     // the count of tensors when all are

  // Tensors in order, without a gap, from first_incomplete() on. A tensor whose first bytes are already on the
  // disk is given whole again: those bytes are passed over.
  Result<> begin_tensor(size_t tensor);
  Result<> write(std::span<const uint8_t> bytes);  // its next bytes
  Result<> end_tensor();                           // an error if bytes are missing

  // A file beside the shards. A second one of the same name replaces the first. At any time before finish().
  Result<> add_asset(const std::string& file, std::span<const uint8_t> bytes);

  // Writes manifest.json, flushes all and renames the folder. Errors: tensors missing, the disk.
  Result<RdrrManifest> finish();

 private:
  struct State;
  explicit RdrrWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Removes what an interrupted run has left of `folder`; nothing there is no error.
Result<> discard_rdrr_remains(const std::string& folder);

// Writes manifest.json of a finished folder anew, atomically: to add a self test or kernel hints. Tensors,
// shards and assets must be those of the folder.
Result<> rewrite_rdrr_manifest(const std::string& folder, RdrrManifest manifest);

}  // namespace doppler::formats
