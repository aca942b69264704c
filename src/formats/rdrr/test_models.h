// Shared by the tests of rdrr/: a small model with tensors that cross shards, and folders that vanish.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/rdrr/rdrr_writer.h"
#include "formats/rdrr/write_progress_native.h"
#include "formats/test_helpers.h"

namespace doppler::formats {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(make_temporary_folder("doppler_rdrr_")) {}
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

// 6 tensors in shards of 1 KiB: f32 and q8_0, within a shard, over two and over many shards.
inline RdrrManifest small_outline() {
  RdrrManifest outline;
  outline.id = "small";
  outline.type = "llama";
  outline.architecture["n_layers"] = 1;
  outline.architecture["rope_theta"] = 10000.5;
  outline.quantization.weights = "q8_0";
  outline.shard_bytes = 1024;
  const auto add = [&](const char* name, DType type, std::vector<uint64_t> shape, RdrrRole role) {
    RdrrTensor tensor;
    tensor.name = name;
    tensor.type = type;
    tensor.shape = std::move(shape);
    tensor.role = role;
    tensor.source_index = outline.tensors.size();
    outline.tensors.push_back(std::move(tensor));
  };
  add("token_embd.weight", DType::kQ8_0, {20, 64}, RdrrRole::kEmbeddings);
  add("blk.0.attn_norm.weight", DType::kF32, {64}, RdrrRole::kVector);
  add("blk.0.attn_q.weight", DType::kF16, {64, 64}, RdrrRole::kWeights);
  add("blk.0.scale", DType::kF32, {}, RdrrRole::kVector);
  add("output_norm.weight", DType::kF32, {64}, RdrrRole::kVector);
  add("output.weight", DType::kQ8_0, {20, 64}, RdrrRole::kLmHead);
  return outline;
}

// Bytes of tensor `i` that differ from every other tensor's.
inline std::vector<uint8_t> tensor_bytes(const RdrrManifest& manifest, size_t i) {
  std::vector<uint8_t> bytes(manifest.tensors[i].bytes);
  for (size_t j = 0; j < bytes.size(); ++j)
    bytes[j] = static_cast<uint8_t>((j * 7 + j / 251 + i * 31) & 0xFF);
  return bytes;
}

inline std::vector<uint8_t> small_metadata() {
  GgufHeader header;
  header.add_string("general.architecture", "llama");
  header.add_u32("llama.block_count", 1);
  return header.build();
}

inline std::unique_ptr<RdrrWriter> must_open(const std::string& folder, RdrrWriterOptions options = {}) {
  return must(RdrrWriter::open(folder, small_outline(), std::move(options)));
}

inline void write_tensor(RdrrWriter& writer, size_t i, size_t piece = 100) {
  const std::vector<uint8_t> bytes = tensor_bytes(writer.manifest(), i);
  ASSERT_TRUE(writer.begin_tensor(i));
  for (size_t at = 0; at < bytes.size(); at += piece) {
    ASSERT_TRUE(writer.write(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at))));
  }
  ASSERT_TRUE(writer.end_tensor());
}

inline RdrrManifest finish_small(RdrrWriter& writer) {
  for (size_t i = writer.first_incomplete(); i < writer.manifest().tensors.size(); ++i)
    write_tensor(writer, i);
  EXPECT_TRUE(writer.add_asset(kRdrrGgufMetadata, small_metadata()));
  return must(writer.finish());
}

inline void flip_byte(const std::string& path, uint64_t offset, uint8_t flip = 1) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ flip));
}

using Files = std::map<std::string, std::vector<uint8_t>>;  // bytes by name
inline Files files_of(const std::string& folder) {
  Files files;
  for (const std::string& name : must(names_in_folder(folder))) files[name] = read_file(folder + "/" + name);
  return files;
}

}  // namespace doppler::formats
