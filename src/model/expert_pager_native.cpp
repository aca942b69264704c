// The steps of a model whose experts are paged, and how an expert comes to its slot: expert_pager.h.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/bytes.h"
#include "base/trace.h"
#include "formats/quant/repack.h"
#include "kernels/linear/repack/repack.h"
#include "kernels/moe/group_routes.h"
#include "model/expert_pager.h"

namespace doppler::model {
namespace {

using Clock = std::chrono::steady_clock;

double pager_seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool is_tiled(const PagedWeight& weight) { return weight_format_info(weight.weight.format).tiled; }

// Bytes of one expert's matrix in the file.
uint64_t expert_bytes(const PagedWeight& weight, size_t matrix) {
  const formats::TensorInfo& tensor = *weight.tensors[matrix];
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
  return tensor.bytes / rows * weight.n;
}

// Where the rows of a matrix of a slot lie.
struct Target {
  const gpu::Buffer& buffer;
  uint64_t plane0 = 0, plane1 = 0;  // bytes of the buffer
  WeightLayout layout;              // of n rows apart
};
Target target_of(const PagedWeight& weight, size_t matrix, uint32_t slots, uint32_t slot) {
  const uint64_t row = (matrix * slots + slot) * weight.n;
  size_t index = 0;
  while (row >= uint64_t{weight.weight.pieces[index].first_row} + weight.weight.pieces[index].rows) ++index;
  const kernels::WeightPiece& piece = weight.weight.pieces[index];
  const PagedWeight::Place& place = weight.places[index];
  const WeightLayout whole = weight_layout(weight.weight.format, piece.rows, weight.weight.k);
  const uint64_t first = row - piece.first_row;
  return {.buffer = *place.buffer,
          .plane0 = place.offset + first * whole.plane0_row_bytes,
          .plane1 = place.offset + whole.plane1_offset + first * whole.plane1_row_bytes,
          .layout = weight_layout(weight.weight.format, weight.n, weight.weight.k)};
}

void add_copy(gpu::Plan& plan, const gpu::Buffer& from, uint64_t at, const Target& to, uint64_t target,
              uint64_t bytes) {
  const auto word = [](uint64_t count) { return static_cast<uint32_t>(count / sizeof(uint32_t)); };
  plan.words.insert(plan.words.end(),
                    {gpu::kCopy, from.id(), word(at), to.buffer.id(), word(target), word(bytes), 0, 0});
}

// The system may read what the file's pages lack while the experts before it go up.
void announce(const formats::Checkpoint& checkpoint, std::span<const PagedWeight> weights, uint32_t expert) {
  for (const PagedWeight& weight : weights) {
    for (size_t matrix = 0; matrix < weight.tensors.size(); ++matrix) {
      const formats::TensorInfo& tensor = *weight.tensors[matrix];
      const uint64_t bytes = expert_bytes(weight, matrix);
      checkpoint.file(tensor.file).will_read(tensor.offset + expert * bytes, bytes);
    }
  }
}

}  // namespace

bool pages_experts() { return true; }

Task<Result<std::unique_ptr<ExpertPager>>> ExpertPager::make(gpu::Device& device,
                                                             const formats::Checkpoint& checkpoint,
                                                             std::vector<PagedWeight> weights,
                                                             PagingShape shape, RouteBuffers buffers) {
  std::unique_ptr<ExpertPager> pager(new ExpertPager(device, checkpoint, shape, buffers));
  for (PagedWeight& weight : weights) {
    const WeightLayout layout = weight_layout(weight.weight.format, weight.n, weight.weight.k);
    if (weight.n * layout.plane0_row_bytes % sizeof(uint32_t) != 0 ||
        weight.n * layout.plane1_row_bytes % sizeof(uint32_t) != 0) {
      co_return fail(
          ErrorKind::kUnsupported,
          "The experts of %s have %u rows of %s, which are not whole words of 4 bytes; they cannot "
          "be paged.",
          weight.name.c_str(), weight.n, weight_format_info(weight.weight.format).name);
    }
    const auto [page, added] =
        pager->pages_.try_emplace(weight.tag, Page{{}, ExpertSlots(shape.n_experts, shape.n_slots)});
    page->second.weights.push_back(std::move(weight));
  }
  DP_CO_TRY(pager->readback_,
            co_await device.create_readback_ring(1, uint64_t{shape.rows} * 2 * shape.n_used * 4));
  DP_CO_CHECK(co_await pager->prepare());
  co_return pager;
}

// A plan for each kind of matrix that is repacked.
Task<Result<void>> ExpertPager::prepare() {
  uint64_t raw_bytes = 0, packed_bytes = 0;
  for (const auto& [tag, page] : pages_) {
    for (const PagedWeight& weight : page.weights) {
      if (!is_tiled(weight)) continue;
      const kernels::Weight& whole = weight.weight;
      packed_bytes = std::max(packed_bytes, weight_layout(whole.format, weight.n, whole.k).total_bytes);
      for (size_t matrix = 0; matrix < weight.tensors.size(); ++matrix) {
        raw_bytes = std::max(raw_bytes, expert_bytes(weight, matrix));
        const Repacking kind{
            .from = weight.tensors[matrix]->type, .to = whole.format, .n = weight.n, .k = whole.k};
        const auto is_same = [&](const Repacking& other) {
          return other.from == kind.from && other.to == kind.to && other.n == kind.n && other.k == kind.k;
        };
        if (std::ranges::none_of(repackings_, is_same)) repackings_.push_back(kind);
      }
    }
  }
  if (repackings_.empty()) co_return Result<void>();
  const auto whole_words = [](uint64_t bytes) { return (bytes + 15) / 16 * 16; };
  gpu::BufferDesc raw{.name = "expert staging", .bytes = whole_words(raw_bytes), .zeroed = false};
  DP_CO_TRY(raw_, co_await device_.create_buffer(std::move(raw)));
  gpu::BufferDesc packed{.name = "expert", .bytes = whole_words(packed_bytes)};
  DP_CO_TRY(packed_, co_await device_.create_buffer(std::move(packed)));
  gpu::PlanBuilder builder(device_.caps());
  const kernels::Policy policy;
  std::vector<kernels::Choice> choices;
  kernels::Context ctx{
      .plan = builder, .policy = policy, .choices = choices, .state = {}, .max_rows = 1, .op_label = {}};
  ctx.op_label = "expert";
  for (Repacking& kind : repackings_) {
    kind.plan = static_cast<size_t>(&kind - repackings_.data());
    const uint64_t bytes = weight_layout(kind.to, kind.n, kind.k).total_bytes;
    kernels::Repack op{.from = kind.from, .to = kind.to};
    op.k = kind.k;
    op.raw = builder.external(raw_);
    op.rows = kind.n;
    op.piece = {.buffer = builder.external(packed_).sub(0, bytes), .first_row = 0, .rows = kind.n};
    builder.begin("repack", 1);
    DP_CO_CHECK(kernels::record(ctx, op));
    builder.end();
  }
  auto building = builder.build(device_, {});
  DP_CO_TRY(built_, co_await std::move(building));
  co_return Result<void>();
}

const std::vector<gpu::Plan>& ExpertPager::parts_of(const gpu::Plan& plan) {
  std::vector<gpu::Plan>& parts = parts_[&plan];
  const auto words = plan.words.begin();
  for (size_t i = parts.size(); i < plan.parts.size(); ++i) {
    const size_t first = plan.parts[i].first;
    const size_t end = i + 1 < plan.parts.size() ? plan.parts[i + 1].first : plan.entries.size();
    const auto at = [&](size_t command) {
      return words + static_cast<ptrdiff_t>(command * gpu::kPlanCommandWords);
    };
    parts.push_back(
        {.name = plan.name, .max_rows = plan.max_rows, .words = {at(first), at(end)}, .entries = {}});
  }
  return parts;
}

Task<Result<const gpu::Plan*>> ExpertPager::run(const gpu::Plan& plan, uint32_t rows,
                                                const gpu::Plan* before) {
  std::vector<gpu::Work> works;
  if (before) works.push_back({.plan = before});
  if (plan.parts.empty()) {
    DP_CO_CHECK(device_.submit(works));
    co_return &plan;
  }
  const std::vector<gpu::Plan>& parts = parts_of(plan);
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const gpu::Work work{.plan = &parts[i], .rows = rows};
    const uint32_t tag = plan.parts[i].tag;
    if (tag == 0) {
      works.push_back(work);
      continue;
    }
    DP_CO_TRY(const std::vector<uint32_t> routes, co_await read_routes(works, rows));
    works.clear();
    Page& page = pages_.at(tag);
    const std::vector<uint32_t> experts = wanted(routes);
    figures_.uses += experts.size();
    for (const ExpertSlots::Turn& turn : page.slots.turns(experts)) {
      if (!works.empty()) DP_CO_CHECK(device_.submit(works));
      const auto start = Clock::now();
      for (const ExpertSlots::Upload& upload : turn.uploads)
        announce(checkpoint_, page.weights, upload.expert);
      for (const ExpertSlots::Upload& upload : turn.uploads) DP_CO_CHECK(co_await bring(page, upload));
      figures_.upload_seconds += pager_seconds_since(start);
      figures_.misses += turn.uploads.size();
      DP_CO_CHECK(write_routes(page, turn, routes, plan.max_rows));
      works = {work};
    }
  }
  DP_CO_CHECK(device_.submit(works));
  co_return &parts.back();
}

Task<Result<std::vector<uint32_t>>> ExpertPager::read_routes(std::span<const gpu::Work> works,
                                                             uint32_t rows) {
  const TraceSpan span("wait for routes");
  const auto start = Clock::now();
  const uint64_t bytes = uint64_t{rows} * 2 * shape_.n_used * sizeof(uint32_t);
  const gpu::ReadbackRequest request{
      .ring = &readback_, .slot = 0, .from = {.buffer = buffers_.routes->id(), .offset = 0, .bytes = bytes}};
  DP_CO_CHECK(device_.submit(works, &request));
  DP_CO_TRY(const std::vector<uint8_t> read, co_await device_.read(readback_, 0, bytes));
  std::vector<uint32_t> routes(read.size() / sizeof(uint32_t));
  std::memcpy(routes.data(), read.data(), read.size());
  figures_.wait_seconds += pager_seconds_since(start);
  co_return routes;
}

// The experts of all rows, each once, in the order in which they are named.
std::vector<uint32_t> ExpertPager::wanted(std::span<const uint32_t> routes) const {
  std::vector<uint32_t> experts;
  std::vector<bool> seen(shape_.n_experts);
  for (size_t i = 0; i < routes.size(); ++i) {
    if (i % (2 * shape_.n_used) >= shape_.n_used) continue;
    const uint32_t expert = std::min(routes[i], shape_.n_experts - 1);
    if (!seen[expert]) experts.push_back(expert);
    seen[expert] = true;
  }
  return experts;
}

Task<Result<void>> ExpertPager::bring(Page& page, ExpertSlots::Upload upload) {
  const TraceSpan span("expert");
  for (const PagedWeight& weight : page.weights) {
    for (size_t matrix = 0; matrix < weight.tensors.size(); ++matrix) {
      const formats::TensorInfo& tensor = *weight.tensors[matrix];
      formats::ByteSource& file = checkpoint_.file(tensor.file);
      const uint64_t bytes = expert_bytes(weight, matrix), begin = tensor.offset + upload.expert * bytes;
      const std::span<const uint8_t> mapped = file.mapped();
      std::vector<uint8_t> held;
      if (mapped.empty()) {
        DP_CO_TRY(held, co_await file.read(begin, bytes));
      } else {
        DP_CO_CHECK(co_await file.ready(begin, bytes));
      }
      const std::span<const uint8_t> source = mapped.empty() ? held : mapped.subspan(begin, bytes);
      auto bringing = is_tiled(weight) ? bring_tiles(weight, matrix, source, upload.slot)
                                       : bring_rows(weight, matrix, source, upload.slot);
      DP_CO_CHECK_WHILE(co_await std::move(bringing), "uploading expert %u of %s", upload.expert,
                        weight.name.c_str());
      if (!mapped.empty()) DP_CO_CHECK(co_await file.ready(begin, bytes));
      figures_.bytes += bytes;
      if (weight.biases.empty()) continue;
      const float* first = weight.biases.data() + (matrix * shape_.n_experts + upload.expert) * weight.n;
      const std::vector<float> bias(first, first + weight.n);
      const uint64_t at = (matrix * shape_.n_slots + upload.slot) * weight.n * sizeof(float);
      DP_CO_CHECK(device_.write(*weight.bias.buffer, weight.bias.offset + at, bytes_of(bias)));
    }
  }
  co_return Result<void>();
}

Task<Result<void>> ExpertPager::bring_tiles(const PagedWeight& weight, size_t matrix,
                                            std::span<const uint8_t> bytes, uint32_t slot) {
  DP_CO_CHECK(co_await device_.upload(raw_, 0, bytes));
  const auto kind = std::ranges::find_if(repackings_, [&](const Repacking& made) {
    return made.from == weight.tensors[matrix]->type && made.to == weight.weight.format &&
           made.n == weight.n && made.k == weight.weight.k;
  });
  const Target target = target_of(weight, matrix, shape_.n_slots, slot);
  gpu::Plan copies{.name = "expert", .max_rows = 1, .words = {}, .entries = {}};
  add_copy(copies, packed_, 0, target, target.plane0, weight.n * target.layout.plane0_row_bytes);
  if (target.layout.plane1_offset != 0) {
    add_copy(copies, packed_, target.layout.plane1_offset, target, target.plane1,
             weight.n * target.layout.plane1_row_bytes);
  }
  const gpu::Work works[] = {{.plan = &built_.plans[kind->plan]}, {.plan = &copies}};
  co_return device_.submit(works);
}

Task<Result<void>> ExpertPager::bring_rows(const PagedWeight& weight, size_t matrix,
                                           std::span<const uint8_t> bytes, uint32_t slot) {
  const Target target = target_of(weight, matrix, shape_.n_slots, slot);
  const DType type = weight.tensors[matrix]->type;
  const uint32_t k = weight.weight.k;
  if (formats::is_plain_copy(type, weight.weight.format, k)) {
    co_return co_await device_.upload(target.buffer, target.plane0, bytes);
  }
  std::vector<uint8_t> plane0(weight.n * target.layout.plane0_row_bytes),
      plane1(weight.n * target.layout.plane1_row_bytes);
  DP_CO_CHECK(formats::repack_rows(type, weight.weight.format, bytes.data(), weight.n, k, plane0.data(),
                                   plane1.empty() ? nullptr : plane1.data()));
  DP_CO_CHECK(co_await device_.upload(target.buffer, target.plane0, plane0));
  if (plane1.empty()) co_return Result<void>();
  co_return co_await device_.upload(target.buffer, target.plane1, plane1);
}

// Experts of other turns go to a slot that no piece of a weight has.
Result<void> ExpertPager::write_routes(const Page& page, const ExpertSlots::Turn& turn,
                                       std::span<const uint32_t> routes, uint32_t max_rows) {
  size_t matrices = 1;
  for (const PagedWeight& weight : page.weights) matrices = std::max(matrices, weight.tensors.size());
  const auto nowhere = static_cast<uint32_t>(matrices * shape_.n_slots);
  std::vector<uint32_t> slots(routes.begin(), routes.end());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (i % (2 * shape_.n_used) >= shape_.n_used) continue;
    const uint32_t slot = turn.slot_of[std::min(slots[i], shape_.n_experts - 1)];
    slots[i] = slot == kNoPlace ? nowhere : slot;
  }
  DP_CHECK(device_.write(*buffers_.slot_routes, 0, bytes_of(slots)));
  if (std::max(max_rows, shape_.least_rows) <= kernels::kMaxNarrowRows)
    return {};  // no product of so few rows reads groups
  return device_.write(*buffers_.slot_groups, 0, bytes_of(groups_of(slots, max_rows)));
}

// kernels/moe/group_routes.h, of the slots that are of this turn.
std::vector<uint32_t> ExpertPager::groups_of(std::span<const uint32_t> slot_routes, uint32_t max_rows) const {
  using kernels::kGroupAlign, kernels::kGroupRows;
  const uint32_t used = shape_.n_used;
  const kernels::GroupSizes sizes({.view = {}, .n_experts = shape_.n_slots, .n_used = used}, max_rows);
  std::vector<std::vector<uint32_t>> of_slot(shape_.n_slots);
  for (uint32_t i = 0; i < slot_routes.size(); ++i) {
    const uint32_t row = i / (2 * used), place = i % (2 * used);
    if (place < used && slot_routes[i] < shape_.n_slots)
      of_slot[slot_routes[i]].push_back(row * used + place);
  }
  std::vector<uint32_t> groups(sizes.bytes() / sizeof(uint32_t), 0);
  const size_t places = 4 + size_t{4} * sizes.tiles;
  uint32_t tile = 0, place = 0;
  for (uint32_t slot = 0; slot < shape_.n_slots; ++slot) {
    const auto count = static_cast<uint32_t>(of_slot[slot].size());
    for (uint32_t first = 0; first < count; first += kGroupRows) {
      const uint32_t words[] = {slot, place + first, std::min(kGroupRows, count - first)};
      std::ranges::copy(words, groups.begin() + 4 * (1 + ptrdiff_t{tile++}));
    }
    const uint32_t end = place + (count + kGroupAlign - 1) / kGroupAlign * kGroupAlign;
    std::ranges::copy(of_slot[slot], groups.begin() + static_cast<ptrdiff_t>(places + place));
    std::fill(groups.begin() + static_cast<ptrdiff_t>(places + place + count),
              groups.begin() + static_cast<ptrdiff_t>(places + end), kernels::kNoSlot);
    place = end;
  }
  groups[0] = tile;
  groups[1] = place;
  return groups;
}

}  // namespace doppler::model
