// WeightLoader and WeightStream from a file to the GPU's buffers: stacked and fused tensors, several chunks, several
// pieces, mapped files and such as a browser has, against what formats/quant makes of the same bytes.
#include "model/weight_stream.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/process.h"
#include "formats/file_set_native.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/test_helpers.h"
#include "kernels/testing/kernel_harness.h"
#include "model/weight_loader.h"

namespace doppler::model {
namespace {

using formats::must;
using kernels::testing::device;

struct Rows {
  DType type;
  uint64_t rows;
  const uint8_t* bytes;
};

class WeightStreamTest : public testing::TestWithParam<bool> {
 protected:
  void add(const std::string& name, DType type, uint64_t rows, uint64_t k) {
    header_.add_tensor(name, type, {rows, k});
  }
  // The tensors' bytes are random, with scales that are finite whatever the type: no exponent is all ones.
  void open() {
    std::vector<uint8_t> file = header_.build();
    const size_t data = file.size();
    file.resize(header_.file_bytes());
    kernels::testing::Random random(1);
    for (size_t i = data; i < file.size(); ++i) file[i] = static_cast<uint8_t>(random.below(256) & 0xBB);
    file_ = file;
    std::unique_ptr<formats::FileSet> files;
    if (GetParam()) {
      path_ = testing::TempDir() + "/weight_stream_test." + std::to_string(process_id()) + ".gguf";
      std::ofstream(path_, std::ios::binary)
          .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
      files = must(formats::open_file_set(path_));
    } else {
      files = std::make_unique<formats::MemoryFileSet>(
          formats::MemoryFileSet::Files{{"m.gguf", std::move(file)}}, "m.gguf", &bytes_read_);
    }
    checkpoint_ = must(formats::run_now(formats::open_checkpoint(std::move(files))));
  }
  ~WeightStreamTest() override {
    if (!path_.empty()) std::remove(path_.c_str());
  }
  Rows rows_of(const std::string& tensor, uint64_t first, uint64_t rows) const {
    const formats::TensorInfo* info = checkpoint_->find(tensor);
    return {info->type, rows, file_.data() + info->offset + first * (info->bytes / info->shape[0])};
  }
  template <class T>
  T wait(Task<T> task) {
    return gpu::run_to_completion(device(), std::move(task));
  }
  void run(WeightLoader& loader) {
    ASSERT_TRUE(wait(loader.stream().prepare()));
    const auto done = wait(loader.stream().run());
    ASSERT_TRUE(done) << done.error().message();
  }
  // The buffer, from `offset` on, against the host's repacking of these rows, part by part.
  void expect(const gpu::Buffer& buffer, WeightFormat format, uint32_t k, std::vector<Rows> parts,
              uint64_t offset = 0) {
    uint64_t rows = 0;
    for (const Rows& part : parts) rows += part.rows;
    const WeightLayout layout = weight_layout(format, rows, k);
    std::vector<uint8_t> want(layout.total_bytes);
    uint8_t* plane1 = layout.plane1_offset == 0 ? nullptr : want.data() + layout.plane1_offset;
    uint64_t at = 0;
    for (const Rows& part : parts) {
      if (weight_format_info(format).tiled) {
        ASSERT_TRUE(formats::repack_tiles(part.type, part.bytes, at, part.rows, k, want.data(), plane1));
      } else {
        ASSERT_TRUE(formats::repack_rows(part.type, format, part.bytes, part.rows, k,
                                         want.data() + at * layout.plane0_row_bytes,
                                         plane1 ? plane1 + at * layout.plane1_row_bytes : nullptr));
      }
      at += part.rows;
    }
    ASSERT_GE(buffer.bytes(), offset + want.size());
    std::vector<uint8_t> got = must(wait(device().read_buffer({buffer.id(), offset, want.size()})));
    for (uint64_t i = layout.padded_rows * layout.plane0_row_bytes; i < layout.plane1_offset; ++i) got[i] = 0;
    EXPECT_TRUE(got == want);
  }

  formats::GgufHeader header_;
  std::vector<uint8_t> file_;
  std::string path_;
  uint64_t bytes_read_ = 0;
  std::unique_ptr<formats::Checkpoint> checkpoint_;
  gpu::PlanBuilder plan_{device().caps()};
};

TEST_P(WeightStreamTest, StacksChunksAndFuses) {
  add("blk.0.attn_q.weight", DType::kQ4_K, 64, 512);
  add("blk.0.attn_k.weight", DType::kQ4_K, 32, 512);
  add("blk.0.attn_v.weight", DType::kQ6_K, 45, 512);
  add("blk.1.attn_qkv.weight", DType::kQ5_0, 3 * 40, 96);
  add("big.weight", DType::kQ8_0, 40'000, 512);  // 21.8 MB
  add("plain.weight", DType::kF32, 5, 64);
  open();
  uint64_t told = 0, total = 0;
  WeightLoader loader(device(), plan_, *checkpoint_, {.exact = false, .tiles = true},
                      [&](uint64_t done, uint64_t all) {
                        EXPECT_GE(done, told);
                        told = done;
                        total = all;
                        return true;
                      });
  const auto split = must(wait(loader.projection(
      {{"blk.0.attn_q", {64, 512}}, {"blk.0.attn_k", {32, 512}}, {"blk.0.attn_v", {45, 512}}})));
  const auto fused = must(wait(loader.projection(
      {{"blk.1.attn_q", {40, 96}}, {"blk.1.attn_k", {40, 96}}, {"blk.1.attn_v", {40, 96}}})));
  must(wait(loader.matrix({"big", {40'000, 512}})));
  must(wait(loader.matrix({"plain", {5, 64}})));
  run(loader);
  EXPECT_EQ(told, total);
  ASSERT_EQ(split.parts.size(), 2u);
  ASSERT_EQ(fused.parts.size(), 3u);  // 40 rows are no whole tiles: each begins at one of its own
  const auto buffers = loader.take_buffers();
  ASSERT_EQ(buffers.size(), 7u);
  expect(buffers[0], WeightFormat::kTileQ4, 512,
         {rows_of("blk.0.attn_q.weight", 0, 64), rows_of("blk.0.attn_k.weight", 0, 32)});
  expect(buffers[1], WeightFormat::kTileQ6, 512, {rows_of("blk.0.attn_v.weight", 0, 45)});
  for (uint64_t i = 0; i < 3; ++i) {
    expect(buffers[2 + i], WeightFormat::kTileQ5, 96, {rows_of("blk.1.attn_qkv.weight", 40 * i, 40)});
  }
  expect(buffers[5], WeightFormat::kTileQ8, 512, {rows_of("big.weight", 0, 40'000)});
  expect(buffers[6], WeightFormat::kF32, 64, {rows_of("plain.weight", 0, 5)});
  const StreamedBytes& bytes = loader.stream().streamed();
  EXPECT_EQ(bytes.copied, GetParam() ? 5u * 64 * 4 : 0u);
  EXPECT_EQ(bytes.rearranged, GetParam() ? 0u : 5u * 64 * 4);  // neither mapped nor a stream of the host
  EXPECT_EQ(bytes.total(), total);
}

TEST_P(WeightStreamTest, ExactLaneKeepsRows) {
  add("a.weight", DType::kQ4_K, 70, 512);
  add("b.weight", DType::kQ6_K, 33, 256);
  open();
  WeightLoader loader(device(), plan_, *checkpoint_, {.exact = true, .tiles = false}, {});
  must(wait(loader.matrix({"a", {70, 512}})));
  must(wait(loader.matrix({"b", {33, 256}})));
  run(loader);
  const auto buffers = loader.take_buffers();
  expect(buffers[0], WeightFormat::kQ4_K, 512, {rows_of("a.weight", 0, 70)});
  expect(buffers[1], WeightFormat::kQ6_K, 256, {rows_of("b.weight", 0, 33)});
  EXPECT_EQ(loader.stream().streamed().repacked, 0u);
}

// Weights of several formats and kinds of copying beside one another, whole layers in a buffer.
TEST_P(WeightStreamTest, PlacesTogether) {
  add("a.weight", DType::kQ4_K, 64, 512);
  add("b.weight", DType::kQ6_K, 45, 512);
  add("c.weight", DType::kF32, 5, 64);
  add("d.weight", DType::kQ8_0, 320, 512);
  add("e.weight", DType::kQ4_K, 64, 512);
  open();
  for (const bool exact : {false, true}) {
    SCOPED_TRACE(exact);
    WeightLoader loader(device(), plan_, *checkpoint_, {.exact = exact, .tiles = !exact}, {});
    const TogetherBytes bytes{.layers = {57344, 2048, 65536, 24576}, .vectors = 4096};
    ASSERT_TRUE(wait(loader.place_together(bytes, 65536)));
    const auto view = [&](const char* name, uint64_t rows, uint64_t k) {
      return must(wait(loader.projection({{name, {rows, k}}}))).parts[0].weight.pieces[0].buffer;
    };
    const auto begin = [&](uint32_t layer) { ASSERT_TRUE(wait(loader.begin_layer(layer))); };
    begin(0);
    const gpu::TensorView a = view("a", 64, 512), b = view("b", 45, 512);
    begin(1);
    const gpu::TensorView c = view("c", 5, 64);
    begin(2);
    const gpu::TensorView d = view("d", 320, 512);
    begin(3);
    const gpu::TensorView e = view("e", 64, 512);
    const gpu::TensorView one = must(wait(loader.values("one", {1, 2, 3, 4})));
    const gpu::TensorView two = must(wait(loader.values("two", {5, 6, 7, 8})));
    run(loader);
    EXPECT_EQ(a.slot, b.slot);
    EXPECT_EQ(a.slot, c.slot);
    EXPECT_NE(a.slot, d.slot);  // larger than a buffer may be
    EXPECT_NE(a.slot, e.slot);
    EXPECT_EQ(one.slot, two.slot);
    const auto buffers = loader.take_buffers();
    ASSERT_EQ(buffers.size(), 4u);  // vectors, layers 0 and 1, what fits of 2 and 3, d
    const WeightFormat q4 = exact ? WeightFormat::kQ4_K : WeightFormat::kTileQ4;
    expect(buffers[1], q4, 512, {rows_of("a.weight", 0, 64)}, a.offset);
    expect(buffers[1], exact ? WeightFormat::kQ6_K : WeightFormat::kTileQ6, 512, {rows_of("b.weight", 0, 45)},
           b.offset);
    expect(buffers[1], WeightFormat::kF32, 64, {rows_of("c.weight", 0, 5)}, c.offset);
    expect(buffers[2], q4, 512, {rows_of("e.weight", 0, 64)}, e.offset);
    expect(buffers[3], exact ? WeightFormat::kQ8_0 : WeightFormat::kTileQ8, 512,
           {rows_of("d.weight", 0, 320)}, d.offset);
    const auto words = must(wait(device().read_buffer({buffers[0].id(), two.offset, 4})));
    EXPECT_EQ(words[0], 5);
  }
}

// Scales of an odd number of words, and a token outside the table.
TEST_P(WeightStreamTest, RowsOfATableOnTheHostComeAsTheTokensAsk) {
  add("a.weight", DType::kQ8_0, 12, 96);
  add("b.weight", DType::kQ6_K, 12, 256);
  open();
  const std::vector<uint8_t> zeros(256);
  for (const auto& [name, k, format] :
       {std::tuple{"a", 96u, WeightFormat::kQ8_0}, {"b", 256u, WeightFormat::kQ6_K}}) {
    SCOPED_TRACE(name);
    WeightLoader loader(device(), plan_, *checkpoint_, {.exact = false, .tiles = true}, {});
    const kernels::Weight room = must(wait(loader.host_matrix({name, {12, k}}, 5)));
    EXPECT_EQ(room.n, 5u);
    EXPECT_EQ(room.format, format);
    run(loader);
    const auto table = loader.take_host_table();
    const auto buffers = loader.take_buffers();
    const std::string tensor = std::string(name) + ".weight";
    const auto row = [&](uint64_t token) { return rows_of(tensor, token, 1); };
    const Rows none{.type = row(0).type, .rows = 1, .bytes = zeros.data()};
    ASSERT_TRUE(table->write(std::vector<uint32_t>{7, 0, 12, 7, 11}));
    expect(buffers[0], format, k, {row(7), row(0), none, row(7), row(11)});
    EXPECT_FALSE(table->write(std::vector<uint32_t>(6)));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, WeightStreamTest, testing::Values(true, false),
                         [](const auto& mapped) { return mapped.param ? "mapped" : "read"; });

}  // namespace
}  // namespace doppler::model
