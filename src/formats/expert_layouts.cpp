// Experts of Hugging Face folders that are one tensor already, but not as GGUF has them: gates and ups in one, those of
// gpt-oss transposed, alternating, or as MXFP4 blocks beside their scales.
#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "formats/expert_tensors.h"

namespace doppler::formats {
namespace {

constexpr uint64_t kBlockCodes = 16,
                   kBlockBytes = 17;  // of 32 numbers: as ggml has them, the scale before the codes
constexpr std::string_view kHalves = ".input_linear.weight";          // Granite's
constexpr std::string_view kGgufGateUp = ".ffn_gate_up_exps.weight";  // GGUF's

// Bytes that are made expert by expert.
class MadeSource : public ByteSource {
 public:
  MadeSource(std::string name, uint64_t experts, uint64_t expert_bytes)
      : name_(std::move(name)), experts_(experts), expert_bytes_(expert_bytes) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return experts_ * expert_bytes_; }
  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    std::vector<uint8_t> bytes;
    bytes.reserve(host_size(count));
    while (bytes.size() < count) {
      const uint64_t at = offset + bytes.size(), within = at % expert_bytes_;
      auto making = make(at / expert_bytes_);
      DP_CO_TRY(const std::vector<uint8_t> expert, co_await std::move(making));
      const uint64_t part = std::min(count - bytes.size(), expert_bytes_ - within);
      const auto first = expert.begin() + static_cast<ptrdiff_t>(within);
      bytes.insert(bytes.end(), first, first + static_cast<ptrdiff_t>(part));
    }
    co_return bytes;
  }

 protected:
  virtual Task<Result<std::vector<uint8_t>>> make(uint64_t expert) = 0;
  uint64_t expert_bytes() const { return expert_bytes_; }

 private:
  std::string name_;
  uint64_t experts_, expert_bytes_;
};

// A tensor of a file, and every `step`-th of its outputs from `first` on.
struct Taken {
  ByteSource* file;
  TensorInfo tensor;
  uint64_t first = 0, step = 1;
};

// [experts, k, n] as [experts, n, k].
class TransposedSource final : public MadeSource {
 public:
  TransposedSource(Taken from, uint64_t n, uint64_t k, uint64_t number_bytes)
      : MadeSource(from.file->name(), from.tensor.shape[0], n * k * number_bytes),
        from_(std::move(from)),
        n_(n),
        k_(k),
        number_bytes_(number_bytes) {}

 private:
  Task<Result<std::vector<uint8_t>>> make(uint64_t expert) override {
    const uint64_t columns = n_ * from_.step, bytes = columns * k_ * number_bytes_;
    auto reading = from_.file->read(from_.tensor.offset + expert * bytes, bytes);
    DP_CO_TRY(const std::vector<uint8_t> given, co_await std::move(reading));
    std::vector<uint8_t> out(host_size(expert_bytes()));
    for (uint64_t row = 0; row < n_; ++row) {
      for (uint64_t column = 0; column < k_; ++column) {
        std::memcpy(&out[host_size((row * k_ + column) * number_bytes_)],
                    &given[host_size((column * columns + row * from_.step + from_.first) * number_bytes_)],
                    host_size(number_bytes_));
      }
    }
    co_return out;
  }

  Taken from_;
  uint64_t n_, k_, number_bytes_;
};

// Codes two a byte, [experts, n, blocks, 16], and scales, [experts, n, blocks], as ggml's blocks. A byte of ggml has
// the numbers i and i + 16; here it has 2i and 2i + 1.
class Mxfp4Source final : public MadeSource {
 public:
  Mxfp4Source(Taken codes, TensorInfo scales, ByteSource* scale_file, uint64_t n, uint64_t blocks)
      : MadeSource(codes.file->name(), codes.tensor.shape[0], n * blocks * kBlockBytes),
        codes_(std::move(codes)),
        scales_(std::move(scales)),
        scale_file_(scale_file),
        n_(n),
        blocks_(blocks) {}

 private:
  Task<Result<std::vector<uint8_t>>> make(uint64_t expert) override {
    const uint64_t count = n_ * codes_.step * blocks_;
    auto reading =
        codes_.file->read(codes_.tensor.offset + expert * count * kBlockCodes, count * kBlockCodes);
    DP_CO_TRY(const std::vector<uint8_t> codes, co_await std::move(reading));
    auto reading_scales = scale_file_->read(scales_.offset + expert * count, count);
    DP_CO_TRY(const std::vector<uint8_t> scales, co_await std::move(reading_scales));
    std::vector<uint8_t> out(host_size(expert_bytes()));
    for (uint64_t i = 0; i < n_ * blocks_; ++i) {
      const uint64_t from = (i / blocks_ * codes_.step + codes_.first) * blocks_ + i % blocks_;
      const uint8_t* given = &codes[host_size(from * kBlockCodes)];
      uint8_t* block = &out[host_size(i * kBlockBytes)];
      block[0] = scales[host_size(from)];
      for (size_t j = 0; j < 8; ++j) {
        const uint8_t low = given[j], high = given[j + 8];
        block[1 + 2 * j] = static_cast<uint8_t>((low & 15) | (high & 15) << 4);
        block[2 + 2 * j] = static_cast<uint8_t>(low >> 4 | (high & 0xf0));
      }
    }
    co_return out;
  }

  Taken codes_;
  TensorInfo scales_;
  ByteSource* scale_file_;
  uint64_t n_, blocks_;
};

class Splitter {
 public:
  Splitter(std::vector<std::unique_ptr<ByteSource>>& sources, std::vector<TensorInfo>& tensors,
           bool transposed)
      : sources_(sources), tensors_(tensors), transposed_(transposed) {}

  Result<void> run_gguf() {
    std::vector<TensorInfo> given;
    std::swap(given, tensors_);
    for (TensorInfo& tensor : given) {
      const size_t at = tensor.name.find(kGgufGateUp);
      if (at == std::string::npos) {
        tensors_.push_back(std::move(tensor));
        continue;
      }
      if (tensor.shape.size() != 3) {
        return fail(ErrorKind::kInvalidInput,
                    "Tensor \"%s\" has %zu dimensions; allowed are [experts, 2n, k].",
                    printable(tensor.name).c_str(), tensor.shape.size());
      }
      const std::string prefix = tensor.name.substr(0, at);
      DP_CHECK(put_halves(tensor, prefix + ".ffn_gate_exps.weight", prefix + ".ffn_up_exps.weight"));
    }
    return {};
  }

  Result<void> run() {
    std::vector<TensorInfo> given;
    std::swap(given, tensors_);
    for (TensorInfo& tensor : given) DP_CHECK(add(std::move(tensor), given));
    return {};
  }

 private:
  Result<void> add(TensorInfo tensor, const std::vector<TensorInfo>& given) {
    if (tensor.name.ends_with(kHalves)) return add_halves(tensor);
    constexpr std::string_view kExperts = ".experts.";
    const size_t at = tensor.name.rfind(kExperts);
    const std::string prefix = at == std::string::npos ? "" : tensor.name.substr(0, at + kExperts.size());
    const std::string name = tensor.name.substr(prefix.size());
    if (prefix.empty() || (!name.starts_with("gate_up_proj") && !name.starts_with("down_proj")) ||
        name.ends_with(".weight")) {
      tensors_.push_back(std::move(tensor));
      return {};
    }
    const bool is_down = name.starts_with("down_proj");
    const std::string kind = name.substr(is_down ? 9 : 12);
    if (kind == "_scales") return {};  // read with the codes
    const size_t wanted = kind == "_bias" ? 2 : kind == "_blocks" ? 4 : 3;
    if (tensor.shape.size() != wanted || std::ranges::count(tensor.shape, 0) != 0 ||
        (!kind.empty() && kind != "_bias" && kind != "_blocks")) {
      return fail(ErrorKind::kUnsupported,
                  "Tensor \"%s\" of experts has %zu dimensions; known are [experts, n, k].",
                  printable(tensor.name).c_str(), tensor.shape.size());
    }
    const auto scales = std::ranges::find(
        given, prefix + (is_down ? "down_proj" : "gate_up_proj") + "_scales", &TensorInfo::name);
    if (kind == "_blocks" && scales == given.end()) {
      return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has no scales.", printable(tensor.name).c_str());
    }
    const TensorInfo* scale = scales == given.end() ? nullptr : &*scales;
    const std::string suffix = kind == "_bias" ? ".bias" : ".weight";
    if (is_down) return put(prefix + "down_proj" + suffix, tensor, scale, kind, 0, 1);
    DP_CHECK(put(prefix + "gate_proj" + suffix, tensor, scale, kind, 0, 2));
    return put(prefix + "up_proj" + suffix, tensor, scale, kind, 1, 2);
  }

  // Gates, then ups: of one matrix, or of each expert.
  Result<void> add_halves(const TensorInfo& tensor) {
    const size_t dims = tensor.shape.size();
    if (dims < 2 || dims > 3 || tensor.shape[dims - 2] % 2 != 0 || dtype_info(tensor.type).block_size != 1 ||
        std::ranges::count(tensor.shape, 0) != 0) {
      return fail(
          ErrorKind::kUnsupported,
          "Tensor \"%s\" of %zu dimensions is no gates and ups; known are [2n, k] and [experts, 2n, k] "
          "of plain numbers.",
          printable(tensor.name).c_str(), dims);
    }
    const std::string prefix = tensor.name.substr(0, tensor.name.size() - kHalves.size() + 1);
    return put_halves(tensor, prefix + "gate_proj.weight", prefix + "up_proj.weight");
  }

  // Whole rows, so that blocks of any format stay whole.
  Result<void> put_halves(const TensorInfo& tensor, const std::string& gate, const std::string& up) {
    const size_t dims = tensor.shape.size();
    if (tensor.shape[dims - 2] % 2 != 0 || std::ranges::count(tensor.shape, 0) != 0) {
      return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has no gates and as many ups.",
                  printable(tensor.name).c_str());
    }
    const uint64_t experts = dims == 3 ? tensor.shape[0] : 1, half_bytes = tensor.bytes / experts / 2;
    for (const uint64_t part : {0, 1}) {
      TensorInfo out = tensor;
      out.name = part == 0 ? gate : up;
      out.shape[dims - 2] /= 2;
      std::vector<ByteRun> runs;
      for (uint64_t e = 0; e < experts; ++e) {
        runs.push_back({sources_[tensor.file].get(), tensor.offset + (2 * e + part) * half_bytes});
      }
      DP_CHECK(place(std::move(out), gathered(std::move(runs), half_bytes)));
    }
    return {};
  }

  // Part `part` of `parts` of a tensor.
  Result<void> put(std::string name, const TensorInfo& tensor, const TensorInfo* scales,
                   const std::string& kind, uint64_t part, uint64_t parts) {
    const std::vector<uint64_t>& shape = tensor.shape;
    ByteSource* const file = sources_[tensor.file].get();
    const uint64_t experts = shape[0];
    TensorInfo out{.name = std::move(name), .type = tensor.type, .shape = {}, .file = tensor.file};
    if (kind == "_blocks") {
      const uint64_t n = shape[1] / parts;
      if (tensor.type != DType::kU8 || scales->type != DType::kU8 || shape[3] != kBlockCodes ||
          scales->shape != std::vector<uint64_t>{experts, shape[1], shape[2]}) {
        return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" and its scales are not MXFP4 blocks.",
                    printable(tensor.name).c_str());
      }
      out.type = DType::kMXFP4;
      out.shape = {experts, n, shape[2] * 32};
      return place(std::move(out), std::make_unique<Mxfp4Source>(
                                       Taken{.file = file, .tensor = tensor, .first = part, .step = parts},
                                       *scales, sources_[scales->file].get(), n, shape[2]));
    }
    const uint64_t number_bytes = dtype_info(tensor.type).block_bytes;
    if (dtype_info(tensor.type).block_size != 1) {
      return fail(ErrorKind::kUnsupported, "Tensor \"%s\" of experts is %s; known are plain numbers.",
                  printable(tensor.name).c_str(), dtype_info(tensor.type).name);
    }
    const bool is_bias = kind == "_bias";
    if (transposed_ && !(is_bias && parts == 1)) {
      const uint64_t k = is_bias ? 1 : shape[1], n = shape.back() / parts;
      out.shape = is_bias ? std::vector<uint64_t>{experts, n} : std::vector<uint64_t>{experts, n, k};
      return place(std::move(out), std::make_unique<TransposedSource>(
                                       Taken{.file = file, .tensor = tensor, .first = part, .step = parts}, n,
                                       k, number_bytes));
    }
    // Gates, then ups, of each expert.
    out.shape = shape;
    out.shape[1] /= parts;
    const uint64_t expert_bytes = tensor.bytes / experts;
    std::vector<ByteRun> runs;
    for (uint64_t e = 0; e < experts; ++e) {
      runs.push_back({file, tensor.offset + e * expert_bytes + part * (expert_bytes / parts)});
    }
    return place(std::move(out), gathered(std::move(runs), expert_bytes / parts));
  }

  Result<void> place(TensorInfo tensor, std::unique_ptr<ByteSource> source) {
    tensor.file = static_cast<uint32_t>(sources_.size());
    tensor.offset = 0;
    tensor.bytes = source->size();
    sources_.push_back(std::move(source));
    tensors_.push_back(std::move(tensor));
    return {};
  }

  std::vector<std::unique_ptr<ByteSource>>& sources_;
  std::vector<TensorInfo>& tensors_;
  bool transposed_;
};

}  // namespace

std::unique_ptr<ByteSource> transposed(ByteSource& file, uint64_t count, uint64_t n, uint64_t k,
                                       uint64_t number_bytes) {
  const TensorInfo whole{
      .name = {}, .type = DType::kF32, .shape = {count}, .file = 0, .offset = 0, .bytes = file.size()};
  return std::make_unique<TransposedSource>(Taken{.file = &file, .tensor = whole}, n, k, number_bytes);
}

Result<void> split_experts(std::vector<std::unique_ptr<ByteSource>>& sources,
                           std::vector<TensorInfo>& tensors, bool transposed) {
  return Splitter(sources, tensors, transposed).run();
}

Result<void> split_gguf_experts(std::vector<std::unique_ptr<ByteSource>>& sources,
                                std::vector<TensorInfo>& tensors) {
  return Splitter(sources, tensors, /*transposed=*/false).run_gguf();
}

}  // namespace doppler::formats
