// Fuzz target: any bytes as an adapter. The first byte says as what: a GGUF file, or adapter_config.json, up to a zero byte,
// and after it adapter_model.safetensors. Sizes within one tensor must agree.
#include <algorithm>
#include <memory>

#include "base/fuzz_check.h"
#include "formats/adapters/adapter.h"

using namespace doppler;
using namespace doppler::formats;

namespace {

class Bytes final : public ByteSource {
 public:
  explicit Bytes(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }
  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    const auto begin = bytes_.begin() + static_cast<ptrdiff_t>(offset);
    co_return std::vector<uint8_t>(begin, begin + static_cast<ptrdiff_t>(count));
  }

 private:
  std::string name_ = "fuzz";
  std::vector<uint8_t> bytes_;
};

class Files final : public FileSet {
 public:
  Files(std::string main, std::vector<uint8_t> first, std::vector<uint8_t> second)
      : main_(std::move(main)), first_(std::move(first)), second_(std::move(second)) {}
  const std::string& root() const override { return root_; }
  const std::string& main_file() const override { return main_; }
  Task<Result<std::unique_ptr<ByteSource>>> open(std::string name) override {
    const bool is_second = name == "adapter_model.safetensors";
    co_return std::unique_ptr<ByteSource>(std::make_unique<Bytes>(is_second ? second_ : first_));
  }

 private:
  std::string root_ = "fuzz", main_;
  std::vector<uint8_t> first_, second_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::vector<uint8_t> rest(data + 1, data + size);
  const auto zero = std::find(rest.begin(), rest.end(), uint8_t{0});
  std::unique_ptr<FileSet> files;
  if (data[0] == 'g') {
    files = std::make_unique<Files>("adapter.gguf", rest, std::vector<uint8_t>());
  } else {
    files = std::make_unique<Files>("", std::vector<uint8_t>(rest.begin(), zero),
                                    std::vector<uint8_t>(zero == rest.end() ? zero : zero + 1, rest.end()));
  }
  auto opening = open_adapter(std::move(files));
  opening.start();
  const auto adapter = opening.take();
  if (!adapter) {
    check_sentence(adapter.error());
    return 0;
  }
  for (const AdaptedTensor& tensor : adapter->tensors) {
    if (tensor.a.size() != tensor.rank * tensor.k || tensor.b.size() != tensor.n * tensor.rank) std::abort();
    if (!tensor.bias.empty() && tensor.bias.size() != tensor.n) std::abort();
    if (!tensor.magnitude.empty() && tensor.magnitude.size() != tensor.n) std::abort();
  }
  return 0;
}
