#include "formats/expert_tensors.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.h"

namespace doppler::formats {
namespace {

class GatheredSource final : public ByteSource {
 public:
  GatheredSource(std::vector<ByteRun> runs, uint64_t run_bytes)
      : runs_(std::move(runs)), run_bytes_(run_bytes) {}

  const std::string& name() const override { return runs_[0].file->name(); }
  uint64_t size() const override { return runs_.size() * run_bytes_; }
  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    std::vector<uint8_t> bytes;
    bytes.reserve(host_size(count));
    for (const Part& part : parts(offset, count)) {
      const std::span<const uint8_t> mapped = part.file->mapped();
      if (!mapped.empty()) {
        DP_CO_CHECK(co_await part.file->ready(part.offset, part.bytes));
        const auto run = mapped.subspan(host_size(part.offset), host_size(part.bytes));
        bytes.insert(bytes.end(), run.begin(), run.end());
        DP_CO_CHECK(co_await part.file->ready(part.offset, part.bytes));
        part.file->done_with(part.offset, part.bytes);
        continue;
      }
      auto reading = part.file->read(part.offset, part.bytes);
      DP_CO_TRY(const std::vector<uint8_t> run, co_await std::move(reading));
      bytes.insert(bytes.end(), run.begin(), run.end());
    }
    co_return bytes;
  }
  std::optional<uint32_t> stream_id() const override { return std::nullopt; }
  Task<Result<std::vector<StreamPiece>>> stream_pieces(uint64_t offset, uint64_t count) const override {
    std::vector<StreamPiece> pieces;
    for (const Part& part : parts(offset, count)) {
      auto asking = part.file->stream_pieces(part.offset, part.bytes);
      DP_CO_TRY(const std::vector<StreamPiece> more, co_await std::move(asking));
      if (more.empty()) co_return more;
      pieces.insert(pieces.end(), more.begin(), more.end());
    }
    co_return pieces;
  }
  void will_read(uint64_t offset, uint64_t count) const override {
    for (const Part& part : parts(offset, count)) part.file->will_read(part.offset, part.bytes);
  }

 private:
  struct Part {
    ByteSource* file;
    uint64_t offset, bytes;
  };
  std::vector<Part> parts(uint64_t offset, uint64_t count) const {
    std::vector<Part> out;
    while (count > 0) {
      const ByteRun& run = runs_[host_size(offset / run_bytes_)];
      const uint64_t within = offset % run_bytes_, bytes = std::min(count, run_bytes_ - within);
      out.push_back({run.file, run.offset + within, bytes});
      offset += bytes;
      count -= bytes;
    }
    return out;
  }

  std::vector<ByteRun> runs_;
  uint64_t run_bytes_;
};

// "mlp.experts.7.up_proj.weight": of expert 7, "mlp.experts.up_proj.weight".
struct ExpertName {
  std::string stacked;
  uint32_t expert = 0;
};
std::optional<ExpertName> expert_name(const std::string& name) {
  constexpr std::string_view kExperts = ".experts.";
  const size_t at = name.find(kExperts);
  if (at == std::string::npos) return std::nullopt;
  ExpertName out;
  const char* const first = name.data() + at + kExperts.size();
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(first, last, out.expert);
  if (error != std::errc() || end == last || *end != '.') return std::nullopt;
  out.stacked = name.substr(0, at + kExperts.size()) + std::string(end + 1, last);
  return out;
}

struct Stack {
  std::map<uint32_t, TensorInfo> experts;
};

// True if experts 0.. are all there and alike. Those of unused further layers may not be.
bool is_whole(const Stack& stack) {
  const TensorInfo& first = stack.experts.begin()->second;
  uint32_t next = 0;
  for (const auto& [expert, tensor] : stack.experts) {
    if (expert != next++ || tensor.shape != first.shape || tensor.type != first.type || tensor.bytes == 0)
      return false;
  }
  return true;
}

TensorInfo stacked(const std::string& name, const Stack& stack,
                   std::vector<std::unique_ptr<ByteSource>>& sources) {
  const TensorInfo& first = stack.experts.begin()->second;
  std::vector<ByteRun> runs;
  for (const auto& [expert, tensor] : stack.experts)
    runs.push_back({sources[tensor.file].get(), tensor.offset});
  TensorInfo out{.name = name,
                 .type = first.type,
                 .shape = {runs.size()},
                 .file = static_cast<uint32_t>(sources.size()),
                 .offset = 0,
                 .bytes = first.bytes * runs.size()};
  out.shape.insert(out.shape.end(), first.shape.begin(), first.shape.end());
  sources.push_back(gathered(std::move(runs), first.bytes));
  return out;
}

}  // namespace

std::unique_ptr<ByteSource> gathered(std::vector<ByteRun> runs, uint64_t run_bytes) {
  return std::make_unique<GatheredSource>(std::move(runs), run_bytes);
}

Result<void> gather_experts(std::vector<std::unique_ptr<ByteSource>>& sources,
                            std::vector<TensorInfo>& tensors) {
  std::map<std::string, Stack> stacks;
  for (const TensorInfo& tensor : tensors) {
    const std::optional<ExpertName> name = expert_name(tensor.name);
    if (!name) continue;
    if (!stacks[name->stacked].experts.emplace(name->expert, tensor).second) {
      return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" is there twice.", printable(tensor.name).c_str());
    }
  }
  std::vector<TensorInfo> out;
  for (TensorInfo& tensor : tensors) {
    const std::optional<ExpertName> name = expert_name(tensor.name);
    if (!name || !is_whole(stacks[name->stacked])) {
      out.push_back(std::move(tensor));
    } else if (name->expert == 0) {
      out.push_back(stacked(name->stacked, stacks[name->stacked], sources));
    }
  }
  tensors = std::move(out);
  return {};
}

}  // namespace doppler::formats
