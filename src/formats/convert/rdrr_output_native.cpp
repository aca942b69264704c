// An RDRR folder as the output of a conversion: implements model_output.h with rdrr/rdrr_writer.h.
#include "base/file.h"
#include "formats/convert/model_output.h"
#include "formats/rdrr/rdrr_writer.h"

namespace doppler::formats {
namespace {

class RdrrOutput final : public ModelOutput {
 public:
  RdrrOutput(std::unique_ptr<RdrrWriter> writer, std::map<std::string, std::vector<uint8_t>> assets,
             std::string note)
      : writer_(std::move(writer)), assets_(std::move(assets)), note_(std::move(note)) {}

  size_t first_tensor() const override { return writer_->first_incomplete(); }
  uint64_t resumed_bytes() const override { return writer_->resumed_bytes(); }
  const std::string& remains_note() const override { return note_; }
  Result<> begin_tensor(size_t tensor) override { return writer_->begin_tensor(tensor); }
  Result<> write(std::span<const uint8_t> bytes) override { return writer_->write(bytes); }
  Result<> end_tensor() override { return writer_->end_tensor(); }
  Result<> commit() override {
    for (const auto& [file, bytes] : assets_) DP_CHECK(writer_->add_asset(file, bytes));
    DP_TRY([[maybe_unused]] const RdrrManifest manifest, writer_->finish());
    return {};
  }

 private:
  std::unique_ptr<RdrrWriter> writer_;
  std::map<std::string, std::vector<uint8_t>> assets_;
  std::string note_;
};

}  // namespace

Result<std::unique_ptr<ModelOutput>> open_rdrr_output(RdrrOutline& outline, OutputOptions options) {
  std::string part = options.path;
  while (part.size() > 1 && part.ends_with('/')) part.pop_back();
  part += ".part";
  const bool was_there = is_there(part);
  DP_TRY(auto writer, RdrrWriter::open(options.path, std::move(outline.manifest),
                                       {.fingerprint = options.fingerprint, .replace = options.replace}));
  std::string note;
  if (was_there && writer->resumed_bytes() == 0) {
    note =
        part +
        " was left by another command, or by a run that had finished no shard; the conversion begins anew.";
  }
  return std::make_unique<RdrrOutput>(std::move(writer), std::move(outline.assets), std::move(note));
}

}  // namespace doppler::formats
