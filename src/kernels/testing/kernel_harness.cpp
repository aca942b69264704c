// kernel_harness.h: the shared device, guarded buffers, record and replay.
#include "kernels/testing/kernel_harness.h"

#include <cstdio>
#include <cstdlib>
#include <set>

#include "base/text.h"

namespace doppler::kernels::testing {
namespace {

constexpr int kNoDevice = 77;  // the exit code that doppler_kernel_test() takes for "skipped" under Dawn

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::_Exit(1);
}

template <class T>
T need(Result<T> result) {
  if (!result) give_up(result.error().message());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

gpu::Device& device() {
  static const std::unique_ptr<gpu::Device> shared = [] {
    gpu::DeviceOptions options;
    options.provider = from_environment("DOPPLER_WEBGPU");
    options.adapter = from_environment("DOPPLER_DEVICE");
    Task<Result<std::unique_ptr<gpu::Device>>> opening = gpu::Device::open(options);
    opening.start();
    if (!opening.done()) give_up("Device::open waits natively, which it must not.");
    auto result = opening.take();
    if (!result) {
      std::fprintf(stderr, "%s\n", result.error().message().c_str());
      std::_Exit(kNoDevice);
    }
    std::unique_ptr<gpu::Device> opened = std::move(*result);
    const gpu::Caps& caps = opened->caps();
    std::printf("device: %s, %s, subgroups of %u to %u\n", caps.provider.c_str(), caps.adapter.c_str(),
                caps.subgroup_min, caps.subgroup_max);
    return opened;
  }();
  return *shared;
}

KernelRun::KernelRun(Policy policy, uint32_t max_rows)
    : policy_(std::move(policy)), max_rows_(max_rows), builder_(device().caps()) {
  state.ctx_len = UINT32_MAX;
  state_view_ = make({}, sizeof(StepState), true);
}

TensorView KernelRun::make(std::span<const uint8_t> contents, uint64_t bytes, bool guarded) {
  gpu::Device& gpu = device();
  auto made = std::make_unique<Allocation>();
  const uint64_t front = guarded ? std::max<uint64_t>(kGuardBytes, gpu.caps().binding_alignment) : 0;
  const uint64_t back = guarded ? kGuardBytes : 0;
  const uint64_t total = front + (bytes + 3) / 4 * 4 + back;
  made->buffer = need(gpu::run_to_completion(gpu, gpu.create_buffer({"test", std::max<uint64_t>(total, 4)})));
  made->data_offset = front;
  made->data_bytes = bytes;
  made->guarded = guarded;
  made->view = builder_.external(made->buffer).sub(front, total - front);
  std::vector<uint8_t> image(std::max<uint64_t>(total, 4));
  for (size_t at = 0; at + 4 <= image.size(); at += 4) std::memcpy(&image[at], &kPoison, 4);
  if (!contents.empty()) std::memcpy(&image[front], contents.data(), contents.size());
  need(gpu::run_to_completion(gpu, gpu.upload(made->buffer, 0, image)));
  allocations_.push_back(std::move(made));
  return allocations_.back()->view;
}

const KernelRun::Allocation& KernelRun::find(TensorView view) const {
  for (const auto& allocation : allocations_) {
    if (allocation->view.slot == view.slot) return *allocation;
  }
  give_up("The view does not belong to this KernelRun.");
}

void KernelRun::write(TensorView view, std::span<const uint8_t> bytes) {
  need(gpu::run_to_completion(device(), device().upload(find(view).buffer, view.offset, bytes)));
}

std::vector<uint8_t> KernelRun::read_bytes(TensorView view, uint64_t bytes) {
  if (bytes == 0) return {};
  const uint64_t whole = (bytes + 3) / 4 * 4;  // copies are multiples of 4
  std::vector<uint8_t> read = need(
      gpu::run_to_completion(device(), device().read_buffer({find(view).buffer.id(), view.offset, whole})));
  read.resize(bytes);
  return read;
}

Result<void> KernelRun::try_record(const std::function<Result<void>(Context&)>& body) {
  Context ctx{.plan = builder_,
              .policy = policy_,
              .choices = choices_,
              .state = state_view_,
              .max_rows = max_rows_,
              .op_label = "test"};
  builder_.begin("test", max_rows_);
  Result<void> recorded = body(ctx);
  builder_.end();
  return recorded;
}

bool KernelRun::record(const std::function<Result<void>(Context&)>& body) {
  if (Result<void> recorded = try_record(body); !recorded) {
    const Error& error = recorded.error();
    if (error.kind() == ErrorKind::kUnsupported && !policy_.forced.empty()) {
      note_refusal(policy_.forced.begin()->second, error.sentence());
    } else {
      ADD_FAILURE() << error.message();
    }
    return false;
  }
  auto built = gpu::run_to_completion(device(), builder_.build(device(), {}));
  if (!built) {
    ADD_FAILURE() << built.error().message();
    return false;
  }
  built_ = std::move(*built);
  return true;
}

void KernelRun::replay(uint32_t rows, uint32_t times) {
  state.rows = rows;
  write(state_view_, {reinterpret_cast<const uint8_t*>(&state), sizeof(state)});
  const gpu::Work work{.plan = &built_.plans.front(), .rows = rows, .times = times};
  if (auto submitted = device().submit({&work, 1}); !submitted) {
    ADD_FAILURE() << submitted.error().message();
    return;
  }
  if (auto idle = gpu::run_to_completion(device(), device().idle()); !idle) {
    ADD_FAILURE() << idle.error().message();
    return;
  }
  check_guards();
  const std::vector<uint8_t> bytes = read_bytes(state_view_, sizeof(state));
  std::memcpy(&state, bytes.data(), sizeof(state));
}

void KernelRun::check_guards() {
  for (const auto& allocation : allocations_) {
    if (!allocation->guarded) continue;
    const uint64_t total = allocation->buffer.bytes();
    const std::vector<uint8_t> image =
        need(gpu::run_to_completion(device(), device().read_buffer({allocation->buffer.id(), 0, total})));
    const uint64_t end = allocation->data_offset + (allocation->data_bytes + 3) / 4 * 4;
    for (uint64_t at = 0; at + 4 <= total; at += 4) {
      if (at >= allocation->data_offset && at < end) continue;
      uint32_t word;
      std::memcpy(&word, &image[at], 4);
      if (word == kPoison) continue;
      ADD_FAILURE() << "guard word at byte " << static_cast<int64_t>(at - allocation->data_offset)
                    << " of an output of " << allocation->data_bytes << " bytes was overwritten with "
                    << word;
      break;
    }
  }
}

void note_refusal(std::string_view variant, std::string_view reason) {
  static std::set<std::string> told;
  std::string line =
      format_text("not run here: %s: %s", std::string(variant).c_str(), std::string(reason).c_str());
  if (told.insert(line).second) std::printf("%s\n", line.c_str());
}

}  // namespace doppler::kernels::testing
