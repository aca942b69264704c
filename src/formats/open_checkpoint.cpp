// Recognises what a FileSet holds and reads its headers and tables into a Checkpoint (checkpoint.h).
#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "formats/checkpoint.h"
#include "formats/embedding_modules.h"
#include "formats/expert_tensors.h"
#include "formats/file_headers.h"
#include "formats/float8_tensors.h"
#include "formats/head_tensors.h"
#include "formats/image_tensors.h"
#include "formats/position_tensors.h"
#include "formats/projector/projector.h"
#include "formats/rdrr/rdrr_reader.h"
#include "formats/rdrr/unpacked_source.h"
#include "formats/safetensors/safetensors_index.h"
#include "formats/tied_tensors.h"

namespace doppler::formats {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;  // real ones have a few kB
constexpr int64_t kMaxSplits = 4096;
using SourcePtr = std::unique_ptr<ByteSource>;

}  // namespace

class CheckpointOpener {
 public:
  CheckpointOpener(std::unique_ptr<FileSet> files, RdrrOptions rdrr)
      : result_(new Checkpoint()), rdrr_options_(std::move(rdrr)) {
    result_->files_ = std::move(files);
  }

  Task<Result<std::unique_ptr<Checkpoint>>> run() {
    auto opening = files().main_file().empty() ? open_folder() : open_file();
    if (auto done = co_await std::move(opening); !done) co_return forward(std::move(done).error());
    DP_CO_CHECK(index_tensors());
    co_return std::move(result_);
  }

 private:
  FileSet& files() const { return *result_->files_; }

  Task<Result<>> open_folder() {
    auto looking = holds_rdrr();
    DP_CO_TRY(const bool is_rdrr, co_await std::move(looking));
    if (is_rdrr) {
      auto reading = read_rdrr();
      co_return co_await std::move(reading);
    }
    auto opening = open_if_there("config.json");
    DP_CO_TRY(SourcePtr config, co_await std::move(opening));
    const std::vector<std::string> ggufs = gguf_models();
    const bool has_safetensors = std::ranges::any_of(
        files().list(), [](const std::string& name) { return name.ends_with(".safetensors"); });
    if (config && (has_safetensors || ggufs.empty())) {
      auto reading = open_hugging_face(std::move(config), "");
      co_return co_await std::move(reading);
    }
    if (ggufs.size() == 1) {
      auto reading = open_gguf(ggufs[0]);
      co_return co_await std::move(reading);
    }
    if (ggufs.size() > 1) {
      co_return fail(ErrorKind::kInvalidInput,
                     "Folder %s holds %zu GGUF files; name a single file, such as %s.",
                     files().root().c_str(), ggufs.size(), printable(ggufs[0]).c_str());
    }
    co_return fail(ErrorKind::kInvalidInput,
                   "%s holds no model: neither config.json nor a .gguf file nor %s.", files().root().c_str(),
                   kRdrrManifestName);
  }

  // The GGUF files of the folder, of a split one the first part; not the projectors of pictures beside them.
  std::vector<std::string> gguf_models() const {
    std::vector<std::string> out;
    for (const std::string& name : files().list()) {
      const bool is_first =
          name.find("-of-") == std::string::npos || name.find("-00001-of-") != std::string::npos;
      if (name.ends_with(".gguf") && is_first && !is_projector_name(name)) out.push_back(name);
    }
    return out;
  }

  Task<Result<>> open_file() {
    const std::string name = files().main_file();
    if (name == "config.json" || name == kSafetensorsIndexName || name == kRdrrManifestName) {
      auto reading = open_folder();
      co_return co_await std::move(reading);
    }
    auto opening = open_if_there(name);
    DP_CO_TRY(SourcePtr source, co_await std::move(opening));
    if (!source) co_return fail(ErrorKind::kIo, "There is no file %s.", files().root().c_str());
    auto looking = look_at(*source);
    DP_CO_TRY(const FileLook look, co_await std::move(looking));
    if (look == FileLook::kGguf) {
      auto reading = open_gguf(name);
      co_return co_await std::move(reading);
    }
    if (look != FileLook::kSafetensors && !name.ends_with(".safetensors")) {
      co_return fail(
          ErrorKind::kInvalidInput,
          "%s is not a model: it begins neither as GGUF nor as safetensors do. Name a .gguf file, or a "
          "folder with config.json and .safetensors files.",
          files().root().c_str());
    }
    auto opening_config = open_if_there("config.json");
    DP_CO_TRY(SourcePtr config, co_await std::move(opening_config));
    if (!config) {
      co_return fail(ErrorKind::kInvalidInput,
                     "There is no config.json beside %s, so its architecture is unknown.",
                     files().root().c_str());
    }
    auto reading = open_hugging_face(std::move(config), name);
    co_return co_await std::move(reading);
  }

  // True: manifest.json has shards beside it, or is the only file that describes a model.
  Task<Result<bool>> holds_rdrr() {
    auto opening = open_if_there(kRdrrManifestName);
    DP_CO_TRY(const SourcePtr manifest, co_await std::move(opening));
    if (!manifest) co_return false;
    auto opening_shard = open_if_there(rdrr_shard_name(0));
    DP_CO_TRY(const SourcePtr shard, co_await std::move(opening_shard));
    if (shard) co_return true;
    auto opening_config = open_if_there("config.json");
    DP_CO_TRY(const SourcePtr config, co_await std::move(opening_config));
    co_return !config;
  }

  Task<Result<>> read_rdrr() {
    auto opening = open_rdrr(files(), rdrr_options_);
    DP_CO_TRY(OpenRdrr open, co_await std::move(opening));
    result_->rdrr_ = std::move(open.manifest);
    result_->verify_ = open.verified;
    result_->sources_.push_back(std::move(open.tensors));
    add_rdrr_tensors();
    auto describing =
        result_->rdrr_->source == RdrrSource::kGguf ? read_headers() : read_config("config.json");
    co_return co_await std::move(describing);
  }

  void add_rdrr_tensors() {
    size_t unpacked = 0;
    for (const RdrrTensor& tensor : result_->rdrr_->tensors) {
      const uint64_t position = rdrr_position(*result_->rdrr_, tensor);
      if (is_row_major(tensor)) {
        result_->tensors_.push_back({tensor.name, tensor.type, tensor.shape, 0, position, tensor.bytes});
        continue;
      }
      SourcePtr source = make_unpacked(*result_->sources_[0], position, tensor);
      const auto number = static_cast<uint32_t>(result_->sources_.size());
      result_->tensors_.push_back({tensor.name, DType::kF32, tensor.shape, number, 0, source->size()});
      result_->sources_.push_back(std::move(source));
      ++unpacked;
    }
    if (unpacked != 0) {
      log(LogLevel::kWarning, "%s: %zu tensors have a layout without kernels; they are unpacked to f32.",
          files().root().c_str(), unpacked);
    }
  }

  Task<Result<>> read_headers() {
    result_->kind_ = Checkpoint::Kind::kGguf;
    auto reading = read_header_asset(kRdrrGgufMetadata);
    DP_CO_TRY(result_->gguf_, co_await std::move(reading));
    if (!result_->rdrr_->asset(kRdrrProjectorMetadata)) co_return Result<>();
    auto reading_projector = read_header_asset(kRdrrProjectorMetadata);
    DP_CO_TRY(result_->projector_, co_await std::move(reading_projector));
    co_return Result<>();
  }

  Task<Result<std::optional<GgufFile>>> read_header_asset(std::string name) {
    auto reading = read_rdrr_asset(files(), *result_->rdrr_, name, result_->verify_);
    DP_CO_TRY(const auto bytes, co_await std::move(reading));
    DP_CO_TRY(GgufParse parse, parse_gguf(*bytes, bytes->size(), name));
    if (!parse.file || !parse.file->tensors().empty()) {
      co_return fail(ErrorKind::kInvalidInput, "%s of %s must be only metadata, without tensors.",
                     name.c_str(), files().root().c_str());
    }
    co_return std::move(parse.file);
  }

  Task<Result<SourcePtr>> open_if_there(std::string name) { return files().open(std::move(name)); }

  Task<Result<>> open_gguf(std::string name) {
    result_->kind_ = Checkpoint::Kind::kGguf;
    auto first_part = open_gguf_part(name);
    DP_CO_TRY(GgufFile first, co_await std::move(first_part));
    DP_CO_TRY(const auto split_count, first.get_integer("split.count"));
    DP_CO_TRY(const auto split_number, first.get_integer("split.no"));
    const int64_t count = split_count.value_or(1);
    result_->gguf_.emplace(std::move(first));
    if (count <= 1) co_return split_gguf_experts(result_->sources_, result_->tensors_);
    if (count > kMaxSplits) {
      co_return fail(ErrorKind::kInvalidInput, "%s is split into %lld files; at most %lld are read.",
                     files().root().c_str(), static_cast<long long>(count),
                     static_cast<long long>(kMaxSplits));
    }
    const std::string first_name = split_name(name, 1, count);
    if (split_number.value_or(0) != 0 || first_name != name) {
      co_return fail(ErrorKind::kInvalidInput,
                     "%s is a part of a model split into %lld files; name the first one%s%s.",
                     files().root().c_str(), static_cast<long long>(count), first_name.empty() ? "" : ", ",
                     printable(first_name).c_str());
    }
    for (int64_t number = 2; number <= count; ++number) {
      auto part = open_gguf_part(split_name(name, number, count));
      auto opened = co_await std::move(part);
      if (!opened) co_return forward(std::move(opened).error());
    }
    co_return split_gguf_experts(result_->sources_, result_->tensors_);
  }

  Task<Result<GgufFile>> open_gguf_part(std::string name) {
    auto opening = open_if_there(name);
    DP_CO_TRY(SourcePtr source, co_await std::move(opening));
    if (!source) {
      co_return fail(ErrorKind::kInvalidInput, "File %s of %s is missing.", printable(name).c_str(),
                     files().root().c_str());
    }
    auto looking = look_at(*source);
    if (auto look = co_await std::move(looking); !look) co_return forward(std::move(look).error());
    auto reading = read_gguf(*source);
    DP_CO_TRY(GgufFile file, co_await std::move(reading));
    const auto number = static_cast<uint32_t>(result_->sources_.size());
    for (const GgufTensor& tensor : file.tensors()) {
      result_->tensors_.push_back(
          {tensor.name, tensor.type, tensor.shape, number, tensor.offset, tensor.bytes});
    }
    result_->sources_.push_back(std::move(source));
    co_return std::move(file);
  }

  // `only` is the safetensors file that was named, or empty for those the folder usually has.
  Task<Result<>> open_hugging_face(SourcePtr config, std::string only) {
    auto reading_config = read_config(config->name());
    if (auto done = co_await std::move(reading_config); !done) co_return forward(std::move(done).error());
    auto reading_index = result_->read_text(kSafetensorsIndexName);
    DP_CO_TRY(const auto index_text, co_await std::move(reading_index));
    SafetensorsIndex index;
    if (index_text) {
      DP_CO_TRY(index, parse_safetensors_index(*index_text, kSafetensorsIndexName));
      if (!only.empty() && std::ranges::find(index.files, only) == index.files.end()) index = {};
    }
    if (index.files.empty()) index.files.push_back(only.empty() ? "model.safetensors" : only);
    for (const std::string& file : index.files) {
      auto opening = open_shard(file);
      if (auto done = co_await std::move(opening); !done) co_return forward(std::move(done).error());
    }
    DP_CO_CHECK(check_index(index, result_->tensors_, aliases_, *result_->config_));
    rename_tied(result_->tensors_, aliases_, *result_->config_);
    auto reading_modules = read_modules();
    if (auto done = co_await std::move(reading_modules); !done) co_return forward(std::move(done).error());
    DP_CO_CHECK(widen_float8(result_->sources_, result_->tensors_, *result_->config_));
    DP_CO_TRY(const auto model_type, get_string(*result_->config_, "model_type"));
    DP_CO_CHECK(split_experts(result_->sources_, result_->tensors_, model_type.value_or("") == "gpt_oss"));
    if (result_->config_->contains("vision_config"))
      reshape_image_tensors(result_->sources_, result_->tensors_);
    DP_CO_CHECK(leave_out_unused_positions(result_->tensors_, *result_->config_));
    DP_CO_CHECK(split_heads(result_->sources_, result_->tensors_, *result_->config_));
    co_return gather_experts(result_->sources_, result_->tensors_);
  }

  // config.json, which is known to be there; `name` is for messages.
  Task<Result<>> read_config(std::string name) {
    result_->kind_ = Checkpoint::Kind::kHuggingFace;
    auto reading_config = result_->read_text("config.json", kMaxConfigBytes);
    DP_CO_TRY(const auto config_text, co_await std::move(reading_config));
    DP_CO_TRY(*result_->config_, parse_json(without_infinities(*config_text), name));
    if (!result_->config_->is_object()) {
      co_return fail(ErrorKind::kInvalidInput, "%s must hold a JSON object, but it is %s.", name.c_str(),
                     result_->config_->type_name());
    }
    co_return Result<>();
  }

  // The member kEmbeddingModules of the config, if there is a modules.json; Dense modules' tensors join the model's.
  Task<Result<>> read_modules() {
    auto reading_list = read_object("modules.json");
    DP_CO_TRY(const Json list, co_await std::move(reading_list));
    if (list.is_null()) co_return Result<>();
    DP_CO_TRY(const std::vector<EmbeddingModule> modules, parse_modules(list));
    Json said = {{"normalize", false}};
    size_t dense = 0;
    for (const EmbeddingModule& module : modules) {
      if (module.kind == ModuleKind::kNormalize) said["normalize"] = true;
      if (module.kind != ModuleKind::kPooling && module.kind != ModuleKind::kDense) continue;
      const std::string file = module.folder + "/config.json";
      auto reading = read_object(file);
      DP_CO_TRY(const Json own, co_await std::move(reading));
      if (own.is_null()) {
        co_return fail(
            ErrorKind::kInvalidInput,
            "modules.json of %s names %s, but there is no %s; \"doppler pull --replace\" fetches it.",
            files().root().c_str(), printable(module.folder).c_str(), printable(file).c_str());
      }
      if (module.kind == ModuleKind::kPooling) {
        DP_CO_TRY(said["pooling"], parse_pooling(own));
        continue;
      }
      DP_CO_CHECK(check_dense(own));
      auto opening = open_shard(module.folder + "/model.safetensors", dense++);
      if (auto done = co_await std::move(opening); !done) co_return forward(std::move(done).error());
    }
    if (dense > kMostDense) {
      co_return fail(ErrorKind::kUnsupported, "%s has %zu Dense modules; at most %zu are supported.",
                     files().root().c_str(), dense, kMostDense);
    }
    if (dense != 0) said["dense"] = dense;
    if (said.contains("pooling")) (*result_->config_)[kEmbeddingModules] = std::move(said);
    co_return Result<>();
  }

  // Null: there is no such file.
  Task<Result<Json>> read_object(std::string file) {
    auto reading = result_->read_text(file, kMaxConfigBytes);
    DP_CO_TRY(const auto text, co_await std::move(reading));
    if (!text) co_return Json();
    co_return parse_json(*text, file);
  }

  // dense: which of the Dense modules the tensors are of.
  static std::string name_of(std::string name, std::optional<size_t> dense) {
    if (dense) return dense_tensor_name(*dense, name);
    // Very old checkpoints call a norm's weight and bias so.
    for (const auto& [old_end, end] :
         {std::pair("LayerNorm.gamma", "LayerNorm.weight"), std::pair("LayerNorm.beta", "LayerNorm.bias")}) {
      if (name.ends_with(old_end))
        name.replace(name.size() - std::string_view(old_end).size(), name.npos, end);
    }
    return name;
  }

  Task<Result<>> open_shard(std::string name, std::optional<size_t> dense = {}) {
    auto opening = open_if_there(name);
    DP_CO_TRY(SourcePtr source, co_await std::move(opening));
    if (!source) co_return missing_weights(name);
    auto looking = look_at(*source);
    if (auto look = co_await std::move(looking); !look) co_return forward(std::move(look).error());
    auto reading = read_safetensors(*source);
    DP_CO_TRY(SafetensorsFile file, co_await std::move(reading));
    const auto number = static_cast<uint32_t>(result_->sources_.size());
    aliases_.insert(aliases_.end(), file.metadata.begin(), file.metadata.end());
    for (SafetensorsTensor& tensor : file.tensors) {
      result_->tensors_.push_back({name_of(std::move(tensor.name), dense), tensor.type,
                                   std::move(tensor.shape), number, tensor.offset, tensor.bytes});
    }
    result_->sources_.push_back(std::move(source));
    co_return Result<>();
  }

  Unexpected missing_weights(const std::string& name) const {
    for (const std::string& other : files().list()) {
      if (other.ends_with(".bin") || other.ends_with(".pth") || other.ends_with(".pt")) {
        return fail(
            ErrorKind::kUnsupported,
            "%s has no %s, only PyTorch weights (%s), which are not read; convert them to safetensors.",
            files().root().c_str(), printable(name).c_str(), printable(other).c_str());
      }
    }
    const std::vector<std::string> ggufs = gguf_models();
    const std::string other =
        ggufs.empty() ? "" : "; it also holds " + printable(ggufs[0]) + ", which may be named";
    return fail(ErrorKind::kInvalidInput, "%s has a config.json but no %s%s.", files().root().c_str(),
                printable(name).c_str(), other.c_str());
  }

  Result<> index_tensors() {
    // A GGUF file may be only a vocabulary: read_config() refuses to run it.
    if (result_->tensors_.empty() && !result_->gguf()) {
      return fail(ErrorKind::kInvalidInput, "%s holds no tensors.", files().root().c_str());
    }
    for (uint32_t i = 0; i < result_->tensors_.size(); ++i) {
      const TensorInfo& tensor = result_->tensors_[i];
      const auto [it, added] = result_->index_.emplace(tensor.name, i);
      if (!added) {
        return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" is in both %s and %s.",
                    printable(tensor.name).c_str(),
                    result_->sources_[result_->tensors_[it->second].file]->name().c_str(),
                    result_->sources_[tensor.file]->name().c_str());
      }
    }
    return {};
  }

  std::unique_ptr<Checkpoint> result_;
  RdrrOptions rdrr_options_;
  TensorAliases aliases_;
};

Task<Result<std::unique_ptr<Checkpoint>>> open_checkpoint(std::unique_ptr<FileSet> files, RdrrOptions rdrr) {
  CheckpointOpener opener(std::move(files), std::move(rdrr));
  auto opening = opener.run();
  co_return co_await std::move(opening);
}

}  // namespace doppler::formats
