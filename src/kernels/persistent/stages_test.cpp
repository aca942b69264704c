// Tests how layers of real shapes are dealt to the workgroups of a large GPU, one of 512 invocations a compute unit.
#include "kernels/persistent/stages.h"

#include <gtest/gtest.h>

namespace doppler::kernels {
namespace {

constexpr uint32_t kGroups = gpu::kAssumedComputeUnits;

gpu::Caps large_gpu() {
  gpu::Caps caps;
  caps.type = gpu::AdapterType::kDiscrete;
  caps.subgroup_min = caps.subgroup_max = 32;
  caps.max_invocations = caps.max_workgroup_size_x = 1024;
  caps.max_workgroup_bytes = 49152;
  return caps;
}

PersistentStages stages(uint32_t hidden, uint32_t ffn, uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                        bool post_norms = false) {
  PersistentLayers op;
  op.layers.resize(1);
  op.layers[0].cache.n_kv_heads = kv_heads;
  op.layers[0].cache.head_dim = head_dim;
  op.groups = kGroups;
  op.n_heads = heads;
  op.hidden_dim = hidden;
  op.ffn_dim = ffn;
  const PersistentShape shape{.qkv_rows = (heads + 2 * kv_heads) * head_dim,
                              .first_rows = (heads + kv_heads) * head_dim,
                              .has_two_parts = true,
                              .parts = {.post_norms = post_norms}};
  return persistent_stages(op, shape, large_gpu());
}

// Units that the busiest invocation loads, over those that an even share would be.
double unevenness(const PersistentStage& stage, uint32_t threads) {
  const uint32_t per_group = (stage.items + kGroups - 1) / kGroups;
  const double even = static_cast<double>(stage.items) * stage.rows * stage.units / (1.0 * kGroups * threads);
  return per_group * stage.units_each / even;
}

TEST(PersistentStages, ShareTheWorkEvenly) {
  struct Row {
    const char* name;
    PersistentStages stages;
  };
  const Row rows[] = {{"1B", stages(2048, 8192, 32, 8, 64)},
                      {"3B", stages(3072, 8192, 24, 8, 128)},
                      {"8B", stages(4096, 14336, 32, 8, 128)}};
  for (const auto& [name, s] : rows) {
    SCOPED_TRACE(name);
    EXPECT_EQ(s.threads, 512u);
    EXPECT_LT(unevenness(s.qkv, s.threads), 1.35);
    EXPECT_LT(unevenness(s.out, s.threads), 1.4);
    EXPECT_LT(unevenness(s.gate, s.threads), 1.3);
    EXPECT_LT(unevenness(s.down, s.threads), 1.4);
    EXPECT_LE(s.partials, 4096u);
    EXPECT_EQ(s.out.rows, s.down.rows);  // the residual stream's rows have one owner
    EXPECT_EQ(s.out.each, s.down.each);
    std::printf("%s qkv %ux%u out %ux%u gate %ux%u down units %u partials %u\n", name, s.qkv.rows, s.qkv.each,
                s.out.rows, s.out.each, s.gate.rows, s.gate.each, s.down.units_each, s.partials);
  }
}

// Gemma 3 4B: rows that are sent before their norm need no whole blocks of 16 in one workgroup.
TEST(PersistentStages, DealEightRowsWhereNormsStandBehindTheBranches) {
  EXPECT_EQ(stages(2560, 10240, 8, 4, 256).out.rows, 32u);
  EXPECT_EQ(stages(2560, 10240, 8, 4, 256, true).out.rows, 8u);
}

}  // namespace
}  // namespace doppler::kernels
