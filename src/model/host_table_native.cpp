// The rows of a step, from the file's to those of the buffer (formats/quant/repack.h), and the room for them.
#include <utility>

#include "base/trace.h"
#include "formats/quant/repack.h"
#include "model/host_table.h"
#include "model/weight_loader.h"

namespace doppler::model {
namespace {

// Native files answer at once.
template <class T>
T run_now(Task<T> task) {
  task.start();
  return task.take();
}

}  // namespace

bool has_host_tables() { return true; }

Task<Result<void>> HostTable::prepare() {
  auto waiting = file_.ready(tensor_.offset, tensor_.bytes);
  co_return co_await std::move(waiting);
}

Result<void> HostTable::gather(std::span<const uint32_t> tokens, const WeightLayout& layout) {
  constexpr uint64_t kWord = sizeof(uint32_t);
  const uint64_t row_bytes = tensor_.bytes / tensor_.shape[0];
  plane0_.assign(tokens.size() * layout.plane0_row_bytes, 0);
  plane1_.assign((tokens.size() * layout.plane1_row_bytes + kWord - 1) / kWord * kWord, 0);
  const auto begin_of = [&](uint32_t token) { return tensor_.offset + token * row_bytes; };
  // The system may read what the file's pages lack all at once.
  for (const uint32_t token : tokens) {
    if (tokens.size() > 1 && token < tensor_.shape[0]) file_.will_read(begin_of(token), row_bytes);
  }
  const std::span<const uint8_t> mapped = file_.mapped();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= tensor_.shape[0]) continue;
    std::vector<uint8_t> held;
    if (mapped.empty()) {
      DP_TRY(held, run_now(file_.read(begin_of(tokens[i]), row_bytes)));
    }
    const uint8_t* const row = mapped.empty() ? held.data() : mapped.data() + begin_of(tokens[i]);
    uint8_t* const scales = plane1_.empty() ? nullptr : plane1_.data() + i * layout.plane1_row_bytes;
    DP_CHECK(formats::repack_rows(tensor_.type, room_.format, row, 1, room_.k,
                                  plane0_.data() + i * layout.plane0_row_bytes, scales));
  }
  return run_now(file_.ready(tensor_.offset, 0));
}

Result<void> HostTable::write(std::span<const uint32_t> tokens) {
  const TraceSpan span("rows of the host's table");
  if (tokens.size() > room_.n) {
    return fail(ErrorKind::kInternal, "A step has %zu rows; there is room for those of %u tokens.",
                tokens.size(), room_.n);
  }
  for (size_t i = 0; i < places_.size() && room_.pieces[i].first_row < tokens.size(); ++i) {
    const kernels::WeightPiece& piece = room_.pieces[i];
    const WeightLayout layout = weight_layout(room_.format, piece.rows, room_.k);
    const size_t count = std::min<size_t>(piece.rows, tokens.size() - piece.first_row);
    DP_CHECK_WHILE(gather(tokens.subspan(piece.first_row, count), layout), "reading %s",
                   tensor_.name.c_str());
    DP_CHECK(device_.write(*places_[i].buffer, places_[i].offset, plane0_));
    DP_CHECK(device_.write(*places_[i].buffer, places_[i].offset + layout.plane1_offset, plane1_));
  }
  return {};
}

// In rows, since no whole tiles come to them.
Task<Result<kernels::Weight>> WeightLoader::host_matrix(formats::StoredTensor matrix, uint32_t rows) {
  DP_CO_TRY(const formats::TensorInfo* tensor, checked(matrix.name + ".weight", matrix.shape));
  const auto k = static_cast<uint32_t>(matrix.shape.back());
  DP_CO_TRY(const WeightFormat format,
            formats::device_format(tensor->type, k, {.exact = layout_.exact, .tiles = false}));
  std::vector<Source> sources = {{tensor, 0, rows}};
  std::vector<PagedWeight::Place> places;
  Together apart;
  DP_CO_TRY(const kernels::Weight room,
            co_await place_stacked(matrix.name, format, std::move(sources), k, apart, 1, &places));
  host_table_ =
      std::make_unique<HostTable>(device_, checkpoint_.file(tensor->file), *tensor, room, std::move(places));
  DP_CO_CHECK(co_await host_table_->prepare());
  DP_CO_CHECK(stream_.note_read(tensor->bytes));
  co_return room;
}

}  // namespace doppler::model
