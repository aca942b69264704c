// Helpers that the golden tests share: the device, references by name, the measure of distance.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "formats/architectures/config.h"
#include "formats/checkpoint.h"
#include "formats/file_set_native.h"
#include "formats/safetensors/safetensors.h"
#include "gpu/device.h"

namespace doppler {

// In the exact lane weights stay as stored and arithmetic is f32, whatever the type of the file.
inline constexpr double kExactTolerance = 5e-5;

// References of one case, by tensor name. All are F32 or I32.
struct References {
  MappedFile file;
  formats::SafetensorsFile header;

  template <class T>
  std::vector<T> get(const std::string& name) const {
    for (const auto& tensor : header.tensors) {
      if (tensor.name != name) continue;
      std::vector<T> out(tensor.bytes / sizeof(T));
      std::memcpy(out.data(), file.bytes().data() + tensor.offset, tensor.bytes);
      return out;
    }
    ADD_FAILURE() << "no reference " << name;
    return {};
  }
};

inline double relative_l2(std::span<const float> got, std::span<const float> wanted) {
  if (got.size() != wanted.size() || got.empty()) return INFINITY;
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double d = static_cast<double>(got[i]) - static_cast<double>(wanted[i]);
    difference += d * d;
    norm += static_cast<double>(wanted[i]) * static_cast<double>(wanted[i]);
  }
  return std::sqrt(difference / norm);
}

inline gpu::Device& device() {
  static const std::unique_ptr<gpu::Device> opened = [] {
    auto task = gpu::Device::open({});
    task.start();
    auto result = task.take();
    if (!result) {
      std::fprintf(stderr, "%s\n", result.error().message().c_str());
      std::exit(1);
    }
    return std::move(*result);
  }();
  return *opened;
}

// The references beside a case's model.
inline References read_references(const std::string& folder, const std::string& name = "refs.safetensors") {
  auto file = MappedFile::open(folder + "/" + name);
  EXPECT_TRUE(file);
  auto header = formats::parse_safetensors(file->bytes(), file->bytes().size(), name);
  EXPECT_TRUE(header);
  return {std::move(*file), std::move(*header)};
}

// A context for prompt a and what follows it. Longrope's references take the factors of short contexts there.
inline uint32_t short_ctx_len(const formats::Checkpoint& checkpoint) {
  constexpr uint32_t kShortText = 12 + 16;  // prompt a and its answer
  const auto config = formats::read_config(checkpoint);
  EXPECT_TRUE(config) << config.error().message();
  const bool is_long = config && config->rope.scaling == formats::RopeScaling::kLongRope;
  const auto original = config ? static_cast<uint32_t>(config->rope.original_ctx_len) : 0;
  return is_long && original >= kShortText ? original : 64;
}

// Says in the test's record (--gtest_output=json) what it showed: a family's files of a format, in a lane, have a
// feature, at most so far from their references. tools/models_matrix.py makes the matrix of `doppler models` from such
// records.
struct Shown {
  const char *format = "hf", *lane = "exact", *feature = "logits";
  double worst = 0;  // relative L2; 0: equal
};
inline void record_shown(const std::string& family, const Shown& shown) {
  char worst[32];
  std::snprintf(worst, sizeof worst, "%.1e", shown.worst);
  const gpu::Caps& caps = device().caps();
  testing::Test::RecordProperty(std::string("shown-") + shown.format + "-" + shown.lane + "-" + shown.feature,
                                family + "|" + worst + "|" + caps.adapter + ", " + caps.provider);
}

inline std::unique_ptr<formats::Checkpoint> open_golden(std::unique_ptr<formats::FileSet> files) {
  auto task = formats::open_checkpoint(std::move(files));
  task.start();
  auto checkpoint = task.take();
  EXPECT_TRUE(checkpoint) << checkpoint.error().message();
  return checkpoint ? std::move(*checkpoint) : nullptr;
}

}  // namespace doppler
