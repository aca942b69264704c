// Conversions of a small GGUF model: round trips, rules for types, interruption, importance matrices, refusals.
#include <gtest/gtest.h>

#include <random>

#include "formats/checkpoint.h"
#include "formats/convert/convert_native.h"
#include "formats/convert/importance.h"
#include "formats/file_set_native.h"
#include "formats/quant/codec.h"
#include "formats/rdrr/test_models.h"

namespace doppler::formats {
namespace {

constexpr uint64_t kColumns = 256;

// Two layers in an order that a load would not take, with metadata of several kinds; with experts, if asked.
void write_model(const std::string& path, bool experts = false) {
  GgufHeader header;
  header.add_string("general.architecture", "llama");
  header.add_u32("general.file_type", 1);
  header.add_strings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  header.add_f32("llama.rope.freq_base", 5000);
  header.add_tensor("output_norm.weight", DType::kF32, {kColumns});
  for (const char* layer : {"blk.1.", "blk.0."}) {
    for (const char* name : {"ffn_down.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight"}) {
      header.add_tensor(std::string(layer) + name, DType::kF16, {64, kColumns});
    }
    header.add_tensor(std::string(layer) + "attn_norm.weight", DType::kF32, {kColumns});
  }
  header.add_tensor("token_embd.weight", DType::kF16, {32, kColumns});
  if (experts) {
    header.add_tensor("blk.0.ffn_gate_inp.weight", DType::kF32, {4, kColumns});
    header.add_tensor("blk.0.ffn_up_exps.weight", DType::kF16, {4, 24, kColumns});
  }
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  MemorySink sink;
  const auto tensors = header.tensors();
  GgufWriter writer(std::move(header), sink);
  ASSERT_TRUE(writer.begin());
  for (const GgufTensor& tensor : tensors) {
    std::vector<float> numbers(tensor.bytes / dtype_info(tensor.type).block_bytes);
    for (float& v : numbers) v = normal(random);
    std::vector<uint8_t> bytes(tensor.bytes);
    ASSERT_TRUE(quantise(tensor.type, numbers.data(), bytes.data(), numbers.size()));
    ASSERT_TRUE(writer.write(bytes));
  }
  ASSERT_TRUE(writer.finish());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(sink.bytes().data()),
             static_cast<std::streamsize>(sink.bytes().size()));
}

std::unique_ptr<Checkpoint> open(const std::string& path) {
  return must(run_now(open_checkpoint(must(open_file_set(path)))));
}

class Conversions : public testing::Test {
 protected:
  void SetUp() override { write_model(home_ / "in.gguf"); }

  Result<ConvertReport> convert(const char* from, const char* to, ConvertOptions options = {},
                                const ConvertCallbacks& callbacks = {}) const {
    options.to = std::string_view(to).ends_with(".gguf") ? OutputKind::kGguf : OutputKind::kRdrr;
    return convert_model(*open(home_ / from), home_ / to, options, callbacks);
  }
  std::string refusal(const ConvertOptions& options) const {
    const auto done = convert("in.gguf", "refused.gguf", options);
    EXPECT_FALSE(std::filesystem::exists(home_ / "refused.gguf"));
    return done ? "" : done.error().sentence();
  }

  TemporaryFolder home_;
};

TEST_F(Conversions, GgufToRdrrAndBackIsTheSameFile) {
  must(convert("in.gguf", "folder"));
  must(convert("folder", "out.gguf"));
  EXPECT_EQ(read_file(home_ / "in.gguf"), read_file(home_ / "out.gguf"));
  must(convert("in.gguf", "again.gguf"));
  EXPECT_EQ(read_file(home_ / "in.gguf"), read_file(home_ / "again.gguf"));
}

TEST_F(Conversions, StackedExpertsGoThereAndBackAndHaveATypeOfTheirOwn) {
  write_model(home_ / "in.gguf", /*experts=*/true);
  must(convert("in.gguf", "folder"));
  must(convert("folder", "out.gguf"));
  EXPECT_EQ(read_file(home_ / "in.gguf"), read_file(home_ / "out.gguf"));
  ConvertOptions options;
  options.quantize = "q4_k";
  options.experts = "q8_0";
  must(convert("in.gguf", "direct.gguf", options));
  must(convert("in.gguf", "small", options));
  must(convert("small", "small.gguf"));
  EXPECT_EQ(read_file(home_ / "direct.gguf"), read_file(home_ / "small.gguf"));
  const auto model = open(home_ / "direct.gguf");
  EXPECT_EQ(model->find("blk.0.ffn_up_exps.weight")->type, DType::kQ8_0);
  EXPECT_EQ(model->find("blk.0.ffn_up_exps.weight")->shape, (std::vector<uint64_t>{4, 24, kColumns}));
  EXPECT_EQ(model->find("blk.0.ffn_gate_inp.weight")->type, DType::kF32);
  EXPECT_EQ(model->find("blk.0.attn_q.weight")->type, DType::kQ4_K);
}

TEST_F(Conversions, RdrrTensorsStandInLoadOrder) {
  must(convert("in.gguf", "folder"));
  std::vector<std::string> names;
  const auto model = open(home_ / "folder");
  for (const TensorInfo& tensor : model->tensors()) names.push_back(tensor.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"token_embd.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight",
                                      "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.ffn_down.weight",
                                      "blk.1.attn_norm.weight", "blk.1.attn_q.weight", "blk.1.attn_k.weight",
                                      "blk.1.attn_v.weight", "blk.1.ffn_down.weight", "output_norm.weight"}));
}

TEST_F(Conversions, TypesGoFromGeneralToParticular) {
  ConvertOptions options;
  options.quantize = "q4_k";
  options.embeddings = "q8_0";
  options.tensors = {{"attn_", "q5_k"}, {R"(^blk\.1\.attn_v)", "q6_k"}, {"attn_norm", "keep"}};
  must(convert("in.gguf", "out.gguf", options));
  const auto model = open(home_ / "out.gguf");
  EXPECT_EQ(model->find("token_embd.weight")->type, DType::kQ8_0);
  EXPECT_EQ(model->find("blk.0.ffn_down.weight")->type, DType::kQ4_K);
  EXPECT_EQ(model->find("blk.0.attn_v.weight")->type, DType::kQ5_K);
  EXPECT_EQ(model->find("blk.1.attn_v.weight")->type, DType::kQ6_K);
  EXPECT_EQ(model->find("blk.1.attn_norm.weight")->type, DType::kF32);
  EXPECT_EQ(must(model->gguf()->get_integer("general.file_type")), 14);
  EXPECT_EQ(must(model->gguf()->get_number("llama.rope.freq_base")), 5000);
}

TEST_F(Conversions, ThreadsAndPiecesDoNotChangeTheBytes) {
  ConvertOptions options;
  options.quantize = "q3_k";
  options.threads = 1;
  must(convert("in.gguf", "one.gguf", options));
  options.threads = 5;
  options.whole_tensors = true;
  must(convert("in.gguf", "many.gguf", options));
  EXPECT_EQ(read_file(home_ / "one.gguf"), read_file(home_ / "many.gguf"));
}

TEST_F(Conversions, InterruptedOnesGoOn) {
  ConvertOptions options;
  options.quantize = "q4_0";
  options.shard_bytes = 4096;
  for (const char* out : {"out.gguf", "folder"}) {
    int pieces = 0;
    const ConvertCallbacks stop_at_8 = {
        .on_progress = {}, .on_note = {}, .stop = [&] { return ++pieces == 8; }};
    EXPECT_EQ(convert("in.gguf", out, options, stop_at_8).error().kind(), ErrorKind::kCancelled);
    EXPECT_FALSE(std::filesystem::exists(home_ / out));
    must(convert("in.gguf", out, options));
    EXPECT_FALSE(std::filesystem::exists(home_ / (std::string(out) + ".part")));
  }
  must(convert("in.gguf", "whole.gguf", options));
  EXPECT_EQ(read_file(home_ / "out.gguf"), read_file(home_ / "whole.gguf"));
  must(convert("folder", "back.gguf"));
  const auto whole = open(home_ / "whole.gguf"), back = open(home_ / "back.gguf");
  for (const TensorInfo& tensor : whole->tensors()) {
    EXPECT_EQ(must(run_now(whole->read_tensor(tensor))),
              must(run_now(back->read_tensor(*back->find(tensor.name)))))
        << tensor.name;
  }
}

TEST_F(Conversions, FusedRowsFollowEachOther) {
  ConvertOptions options;
  options.fuse_qkv = true;
  must(convert("in.gguf", "folder", options));
  const auto source = open(home_ / "in.gguf"), model = open(home_ / "folder");
  const TensorInfo* fused = model->find("blk.1.attn_qkv.weight");
  ASSERT_TRUE(fused);
  EXPECT_EQ(fused->shape, (std::vector<uint64_t>{192, kColumns}));
  EXPECT_FALSE(model->find("blk.1.attn_q.weight"));
  std::vector<uint8_t> expected;
  for (const char* name : {"blk.1.attn_q.weight", "blk.1.attn_k.weight", "blk.1.attn_v.weight"}) {
    const auto bytes = must(run_now(source->read_tensor(*source->find(name))));
    expected.insert(expected.end(), bytes.begin(), bytes.end());
  }
  EXPECT_EQ(must(run_now(model->read_tensor(*fused))), expected);
  EXPECT_NE(convert("folder", "refused.gguf").error().sentence().find("attn_qkv.weight\" is fused"),
            std::string::npos);
}

TEST_F(Conversions, ColumnsHoldTheSameWeights) {
  ConvertOptions options;
  options.quantize = "q8_0";
  options.layout = RdrrLayout::kColumn;
  must(convert("in.gguf", "folder", options));
  const auto source = open(home_ / "in.gguf"), model = open(home_ / "folder");
  const TensorInfo& before = *source->find("blk.0.attn_v.weight");
  const TensorInfo& after = *model->find("blk.0.attn_v.weight");
  ASSERT_EQ(after.type, DType::kF32) << "read back row by row";
  const auto half = must(run_now(source->read_tensor(before))),
             full = must(run_now(model->read_tensor(after)));
  std::vector<float> expected(64 * kColumns), got(64 * kColumns);
  ASSERT_TRUE(dequantise(DType::kF16, half.data(), expected.data(), expected.size()));
  std::memcpy(got.data(), full.data(), full.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 0.0004) << i;  // half a step of 0.1/127
}

TEST_F(Conversions, RefusalsSayWhatIsWrong) {
  ConvertOptions options;
  options.quantize = "q9";
  EXPECT_NE(refusal(options).find("There is no quantisation \"q9\"; there are keep, f32,"),
            std::string::npos);
  options = {};
  options.tensors = {{"(", "q4_0"}};
  EXPECT_NE(refusal(options).find("\"(\" is no regular expression"), std::string::npos);
  options.tensors = {{"attn_x", "q4_0"}};
  EXPECT_EQ(refusal(options), "No tensor's name matches \"attn_x\".");
  options.tensors = {{"attn_q", "q4_9"}};
  EXPECT_NE(refusal(options).find("There is no type \"q4_9\" to write"), std::string::npos);
  options = {};
  options.layout = RdrrLayout::kFlat;
  EXPECT_NE(refusal(options).find("for RDRR folders only"), std::string::npos);
  must(convert("in.gguf", "there.gguf"));
  EXPECT_NE(convert("in.gguf", "there.gguf").error().sentence().find("exists already"), std::string::npos);
}

// Weights `at` of an f16 tensor become the half with these bits.
void overwrite(const std::string& path, const char* name, std::initializer_list<uint64_t> at, uint16_t bits) {
  const uint64_t offset = open(path)->find(name)->offset;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (const uint64_t i : at) {
    file.seekp(static_cast<std::streamoff>(offset + 2 * i));
    file.write(reinterpret_cast<const char*>(&bits), 2);
  }
}

TEST_F(Conversions, WeightsThatNoBlockHoldsAreCountedAndRefused) {
  constexpr uint16_t kNan = 0x7e01, kMinusInfinity = 0xfc00;
  overwrite(home_ / "in.gguf", "blk.0.attn_k.weight", {3 * kColumns + 7, 60 * kColumns}, kNan);
  overwrite(home_ / "in.gguf", "blk.0.attn_v.weight", {kColumns}, kMinusInfinity);
  ConvertOptions options;
  for (const char* type : {"q4_k", "q8_0", "mxfp4", "iq4_nl", "bf16"}) {
    options.quantize = type;
    EXPECT_EQ(refusal(options), std::string("Tensor \"blk.0.attn_k.weight\" holds weights that ") + type +
                                    " cannot hold: 2, the first at row 3, column 7, is nan; mend the source, "
                                    "or keep the tensor as it is with "
                                    "--tensor '^blk.0.attn_k.weight$=keep' or --quantize keep.");
  }
  // All parts of a fused tensor are counted, in its own rows; columns are found where the rows have them.
  options.quantize = "q4_0";
  options.fuse_qkv = true;
  EXPECT_NE(convert("in.gguf", "fused", options)
                .error()
                .sentence()
                .find("attn_qkv.weight\" holds weights that q4_0 cannot hold: 3, the first at row 67, column "
                      "7, is nan"),
            std::string::npos);
  options.fuse_qkv = false;
  options.layout = RdrrLayout::kColumn;
  EXPECT_NE(
      convert("in.gguf", "turned", options)
          .error()
          .sentence()
          .find(
              "attn_k.weight\" holds weights that q4_0 cannot hold: 2, the first at row 3, column 7, is nan"),
      std::string::npos);
  must(convert("in.gguf", "kept.gguf"));
  EXPECT_EQ(read_file(home_ / "in.gguf"), read_file(home_ / "kept.gguf"));
  options = {};
  options.quantize = "f32";  // holds all numbers
  must(convert("in.gguf", "wide.gguf", options));
}

TEST_F(Conversions, NumbersBeyondF16AreRefusedInsteadOfBecomingInfinite) {
  ConvertOptions options;
  options.quantize = "f32";
  must(convert("in.gguf", "wide.gguf", options));
  const uint64_t offset = open(home_ / "wide.gguf")->find("blk.1.ffn_down.weight")->offset;
  const float large = -1e6f;
  std::fstream file(home_ / "wide.gguf", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset + 4));
  file.write(reinterpret_cast<const char*>(&large), 4);
  file.close();
  options.quantize = "f16";
  EXPECT_NE(convert("wide.gguf", "half.gguf", options)
                .error()
                .sentence()
                .find("holds weights that f16 cannot hold: 1, the first at row 0, column 1, is -1e+06;"),
            std::string::npos);
  options.quantize = "bf16";
  must(convert("wide.gguf", "brain.gguf", options));
}

// The first form: column i has the weight `value`, or, in a ramp, value * (i + 1).
std::vector<uint8_t> old_importance(int32_t columns, float value, bool ramp = false) {
  std::vector<uint8_t> bytes;
  const auto add = [&](auto number) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof number);
    std::memcpy(bytes.data() + at, &number, sizeof number);
  };
  const std::string name = "blk.0.attn_q.weight";
  add(int32_t{1});
  add(static_cast<int32_t>(name.size()));
  bytes.insert(bytes.end(), name.begin(), name.end());
  add(int32_t{2});
  add(columns);
  for (int32_t i = 0; i < columns; ++i) add(ramp ? value * static_cast<float>(i + 1) : value);
  return bytes;
}

TEST_F(Conversions, ImportanceReachesTheTensorsThatItNames) {
  const auto write = [&](const std::vector<uint8_t>& bytes) {
    std::ofstream(home_ / "i.dat", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  ConvertOptions options;
  options.quantize = "q4_k";
  options.importance_file = home_ / "i.dat";
  write(old_importance(kColumns, 3));
  const ConvertReport report = must(convert("in.gguf", "out.gguf", options));
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].find("8 quantised tensors have no importance"), std::string::npos)
      << report.notes[0];
  write(old_importance(100, 3));
  EXPECT_NE(refusal(options).find("100 columns, but it has 256"), std::string::npos);
  write(old_importance(kColumns, -1));
  EXPECT_NE(refusal(options).find("negative or not finite"), std::string::npos);
  // Fused matrices read the same vector: the importance of the first part is that of all.
  write(old_importance(kColumns, 3, /*ramp=*/true));
  options.fuse_qkv = true;
  must(convert("in.gguf", "fused", options));
  options.importance_file.clear();
  must(convert("in.gguf", "plain", options));
  const auto weighted = open(home_ / "fused"), plain = open(home_ / "plain");
  const auto bytes_in = [](const Checkpoint& model, const char* name) {
    return must(run_now(model.read_tensor(*model.find(name))));
  };
  EXPECT_NE(bytes_in(*weighted, "blk.0.attn_qkv.weight"), bytes_in(*plain, "blk.0.attn_qkv.weight"));
  EXPECT_EQ(bytes_in(*weighted, "blk.1.attn_qkv.weight"), bytes_in(*plain, "blk.1.attn_qkv.weight"));
  std::vector<uint8_t> cut = old_importance(kColumns, 3);
  for (const size_t bytes : {0u, 3u, 7u, 12u, 40u, 1000u}) {
    EXPECT_FALSE(parse_importance(std::span(cut).first(bytes), "i.dat")) << bytes;
  }
}

}  // namespace
}  // namespace doppler::formats
