#include "formats/convert/convert_native.h"

#include <algorithm>
#include <thread>

#include "base/file.h"
#include "base/folders.h"
#include "formats/convert/importance.h"
#include "formats/convert/model_output.h"
#include "formats/convert/ordered_work_native.h"
#include "formats/convert/outline.h"
#include "formats/convert/piece.h"

namespace doppler::formats {
namespace {

constexpr uint64_t kPieceNumbers =
    1 << 20;  // 4 MB as floats: large against a system call, small against a core's share
constexpr uint32_t kMaxThreads = 64;

template <class T>
T run_now(Task<T> task) {
  task.start();  // native files never wait
  return task.take();
}

// Changes whenever a file of the source does.
std::string source_identity(const Checkpoint& model) {
  if (model.rdrr()) return sha256_hex(model.rdrr()->model_sha256);
  std::string text;
  for (uint32_t i = 0; i < model.file_count(); ++i) {
    const ByteSource& file = model.file(i);
    const int64_t modified_ns = facts_of(file.name()).value_or(FileFacts{}).modified_ns;
    text += format_text("%s %llu %lld.%09lld\n", file.name().c_str(),
                        static_cast<unsigned long long>(file.size()),
                        static_cast<long long>(modified_ns / 1'000'000'000),
                        static_cast<long long>(modified_ns % 1'000'000'000));
  }
  return text;
}

// The header and the source fix everything but what happens to the numbers on the way.
std::string fingerprint_of(const Checkpoint& model, const Conversion& conversion) {
  std::string text = source_identity(model);
  Sha256Hasher hasher;
  for (const OutTensor& tensor : conversion.tensors) {
    text += format_text("%s %s %s", tensor.name.c_str(), dtype_info(tensor.type).name,
                        rdrr_layout_name(tensor.layout));
    for (const TensorPart& part : tensor.parts) {
      text += format_text(" %s/%u/%u/%g%s%s%s", part.source->name.c_str(), part.interleaved_heads,
                          part.halved_heads, static_cast<double>(part.plus), part.is_log ? "/log" : "",
                          part.row_heads.head_size != 0 ? "/row heads" : "",
                          part.column_heads.head_size != 0 ? "/column heads" : "");
    }
    text += "\n";
    hasher.update({reinterpret_cast<const uint8_t*>(tensor.importance.data()), 4 * tensor.importance.size()});
  }
  return text + sha256_hex(hasher.finish());
}

class Converter {
 public:
  Converter(const Checkpoint& model, const Conversion& conversion, const ConvertOptions& options,
            const ConvertCallbacks& callbacks)
      : model_(model), tensors_(conversion.tensors), options_(options), callbacks_(callbacks) {}

  Result<> run(ModelOutput& output) {
    const size_t first = output.first_tensor();
    for (size_t i = 0; i < tensors_.size(); ++i) {
      total_ += tensors_[i].bytes();
      if (i < first) {
        done_ += tensors_[i].bytes();
      } else {
        append_pieces(tensors_[i], static_cast<uint32_t>(i), kPieceNumbers, options_.whole_tensors, pieces_);
      }
    }
    uint32_t threads = options_.threads != 0 ? options_.threads : std::thread::hardware_concurrency();
    threads = std::clamp(threads, 1u, kMaxThreads);
    copies_.resize(2 * threads);
    return work_in_order<ConvertedPiece>(
        0, pieces_.size(), threads, [&](size_t i) { return make_ready(i); },
        [&](size_t i) { return make(i); },
        [&](size_t i, const ConvertedPiece& made) { return take(output, i, made); });
  }

 private:
  const TensorInfo* source_of(const Piece& piece) const {
    const OutTensor& tensor = tensors_[piece.tensor];
    return tensor.parts.empty() ? nullptr : tensor.parts[piece.part].source;
  }
  SourceRange range_of(const Piece& piece) const {
    SourceRange range = source_range(tensors_[piece.tensor], piece);
    if (const TensorInfo* source = source_of(piece)) range.offset += source->offset;
    return range;
  }

  // Verified if the source verifies itself; a copy if it is not mapped.
  Result<> make_ready(size_t i) {
    const Piece& piece = pieces_[i];
    const TensorInfo* source = source_of(piece);
    if (!source) return {};
    ByteSource& file = model_.file(source->file);
    const SourceRange range = range_of(piece);
    if (file.mapped().empty()) {
      DP_TRY(copies_[i % copies_.size()], run_now(file.read(range.offset, range.bytes)));
      return {};
    }
    file.will_read(range.offset, range.bytes);
    return run_now(file.ready(range.offset, range.bytes));
  }

  Result<ConvertedPiece> make(size_t i) {
    const Piece& piece = pieces_[i];
    std::span<const uint8_t> bytes;
    if (const TensorInfo* source = source_of(piece)) {
      const SourceRange range = range_of(piece);
      const auto mapped = model_.file(source->file).mapped();
      bytes = mapped.empty() ? std::span<const uint8_t>(copies_[i % copies_.size()])
                             : mapped.subspan(host_size(range.offset), host_size(range.bytes));
    }
    return convert_piece(tensors_[piece.tensor], piece, bytes);
  }

  Result<> take(ModelOutput& output, size_t i, const ConvertedPiece& made) {
    const Piece& piece = pieces_[i];
    const bool last = i + 1 == pieces_.size() || pieces_[i + 1].tensor != piece.tensor;
    // Unfit weights are counted to the tensor's end.
    add_unfit(unfit_, made.unfit);
    if (last && unfit_.count != 0) return forward(unfit_error(tensors_[piece.tensor], unfit_));
    if (i == 0 || pieces_[i - 1].tensor != piece.tensor) DP_CHECK(output.begin_tensor(piece.tensor));
    DP_CHECK(output.write(made.bytes));
    if (const TensorInfo* source = source_of(piece)) {
      // Pieces of columns all read the whole tensor.
      if (tensors_[piece.tensor].layout != RdrrLayout::kColumn || last) {
        const SourceRange range = range_of(piece);
        DP_CHECK(run_now(model_.file(source->file).ready(range.offset, range.bytes)));
        model_.file(source->file).done_with(range.offset, range.bytes);
      }
    }
    if (last) DP_CHECK(output.end_tensor());
    done_ += made.bytes.size();
    if (callbacks_.on_progress) callbacks_.on_progress(done_, total_);
    if (callbacks_.stop && callbacks_.stop()) {
      return fail(ErrorKind::kCancelled, "The conversion was stopped; the same command goes on with it.");
    }
    return {};
  }

  const Checkpoint& model_;
  const std::vector<OutTensor>& tensors_;
  const ConvertOptions& options_;
  const ConvertCallbacks& callbacks_;
  std::vector<Piece> pieces_;
  std::vector<std::vector<uint8_t>> copies_;  // of pieces under way, if the source is not mapped
  Unfit unfit_;                               // of the tensor under way
  uint64_t done_ = 0, total_ = 0;
};

ConvertReport describe(const Conversion& conversion) {
  ConvertReport report;
  report.tensors = conversion.tensors.size();
  report.notes = conversion.notes;
  for (const OutTensor& tensor : conversion.tensors) {
    report.output_bytes += tensor.bytes();
    ++report.tensors_of_type[dtype_info(tensor.type).name];
    for (const TensorPart& part : tensor.parts) report.source_bytes += part.source->bytes;
  }
  return report;
}

template <class Outline, class Open>
Result<ConvertReport> convert_as(const Checkpoint& model, Outline outline, const std::string& output,
                                 const ConvertOptions& options, const ConvertCallbacks& callbacks,
                                 Open open) {
  if (!options.importance_file.empty()) {
    DP_TRY(const Importance importance, read_importance(options.importance_file));
    DP_CHECK(attach_importance(importance, outline.conversion));
  }
  ConvertReport report = describe(outline.conversion);
  DP_TRY(const std::unique_ptr<ModelOutput> out,
         open(outline, OutputOptions{output, fingerprint_of(model, outline.conversion), options.replace}));
  if (!out->remains_note().empty()) report.notes.push_back(out->remains_note());
  for (const std::string& note : report.notes) {
    if (callbacks.on_note) callbacks.on_note(note);
  }
  report.resumed_bytes = out->resumed_bytes();
  DP_CHECK(Converter(model, outline.conversion, options, callbacks).run(*out));
  DP_CHECK(out->commit());
  return report;
}

// The tower's file beside the text model's: find_projector() finds it by this name.
Result<void> write_projector(const Checkpoint& model, const std::string& output,
                             const ConvertOptions& options, const ConvertCallbacks& callbacks) {
  const std::string file = joined_path(parent_path(output), "mmproj-" + file_name(output));
  DP_TRY(GgufOutline outline, outline_projector(model));
  ConvertOptions as_it_is{.to = OutputKind::kGguf, .replace = options.replace};
  as_it_is.threads = options.threads;
  outline.conversion.notes.push_back("The vision tower goes to " + file + ".");
  DP_CHECK(convert_as(model, std::move(outline), file, as_it_is, callbacks, open_gguf_output));
  return {};
}

}  // namespace

Result<ConvertReport> convert_model(const Checkpoint& model, const std::string& output,
                                    const ConvertOptions& options, const ConvertCallbacks& callbacks) {
  DP_CHECK(check_options(options));
  if (options.to == OutputKind::kGguf) {
    if (model.projector()) DP_CHECK(write_projector(model, output, options, callbacks));
    DP_TRY(GgufOutline outline, run_now(outline_gguf(model, options)));
    return convert_as(model, std::move(outline), output, options, callbacks, open_gguf_output);
  }
  DP_TRY(RdrrOutline outline, run_now(outline_rdrr(model, options)));
  return convert_as(model, std::move(outline), output, options, callbacks, open_rdrr_output);
}

}  // namespace doppler::formats
