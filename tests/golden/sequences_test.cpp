// Many sequences on the GPU: each gets in company what it gets by itself. Prompts in pieces next to decoding slots,
// blocks in no order, sequences that stop while others go on, shared and copied blocks. Models: some of golden_test's,
// one of each way of attention; with DOPPLER_GOLDEN_ALL=1 all. The exact lane promises it; in the others these models'
// best logits are far enough apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>

#include "golden_cases.h"
#include "golden_helpers.h"
#include "kernels/common/step_state.h"
#include "model/device_model.h"
#include "one_answer.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kCtx = 64, kBlockLen = 8, kSlots = 5, kNew = 14;

// Mixtures with weights in tiles, whose tokens differ in the fast lane: other kernels make products of one row and of
// several, within the bound of lanes_test. In the exact lane they are the same.
constexpr std::string_view kExactAlone[] = {"families_moe/mixtral/bf16", "families_moe/gpt_oss_mxfp4"};

struct Case {
  std::string folder, lane;
  kernels::CacheFormat cache = kernels::CacheFormat::kF32;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.folder << ", lane " << c.lane << ", cache " << kernels::cache_format_name(c.cache);
  }
};

std::vector<Case> cases() {
  const bool all = takes_all_cases();
  static constexpr const char* kModels[] = {"llama",        "llama_odd", "gemma3",
                                            "gemma3_hd256", "qwen3",     "h42_d64_window_bf16"};
  std::vector<Case> out;
  for (const fs::path& model : case_folders()) {
    const bool is_model = std::ranges::find(kModels, model.filename().string()) != std::end(kModels);
    if (!is_model && all) {
      const bool exact_alone = std::ranges::any_of(
          kExactAlone, [&](std::string_view name) { return model.string().ends_with(name); });
      out.push_back({model.string(), "exact"});
      if (!exact_alone) out.push_back({model.string(), "fast"});
    }
    if (!is_model) continue;
    for (const char* lane : {"exact", "fast", "portable"}) out.push_back({model.string(), lane});
    // Blocks of bytes: decoding rows read them directly and pieces read a copy, or both read a copy.
    if (model.filename() != "h42_d64_window_bf16") continue;
    for (const char* lane : {"fast", "portable"})
      out.push_back({model.string(), lane, kernels::CacheFormat::kQ8_0});
  }
  std::ranges::sort(out, {}, [](const Case& c) { return c.folder + c.lane; });
  return out;
}

// A sequence under way: a scheduler in a few lines.
struct Sequence {
  std::vector<uint32_t> text;  // prompt, then what was chosen
  size_t prompt = 0, fed = 0;
  uint32_t slot = 0;
  std::vector<uint32_t> blocks;
  std::vector<uint32_t> chosen;
  bool decodes() const { return !chosen.empty(); }
  bool ended() const { return chosen.size() >= kNew; }
};

using Wanted = std::vector<std::vector<uint32_t>>;

class Sequences : public testing::TestWithParam<Case> {
 protected:
  void expect_same_in_company(model::SequencePlans& plans, const Wanted& wanted);
  void expect_same_behind_shared_and_copied_blocks(model::SequencePlans& plans, const Wanted& wanted);
  void expect_same_behind_restored_blocks(model::SequencePlans& plans, const Wanted& wanted);

  std::unique_ptr<model::DeviceModel> load(uint32_t max_sequences) {
    auto files = formats::open_file_set(GetParam().folder);
    EXPECT_TRUE(files) << files.error().message();
    const auto checkpoint = open_golden(std::move(*files));
    auto policy = kernels::make_policy(GetParam().lane);
    EXPECT_TRUE(policy);
    auto runner = gpu::run_to_completion(device(), model::DeviceModel::load(device(), *checkpoint,
                                                                            {.policy = *policy,
                                                                             .ctx_len = kCtx,
                                                                             .chunk = 9,
                                                                             .cache_format = GetParam().cache,
                                                                             .max_sequences = max_sequences,
                                                                             .block_len = kBlockLen},
                                                                            {}));
    EXPECT_TRUE(runner) << runner.error().message();
    return runner ? std::move(*runner) : nullptr;
  }

  std::vector<std::vector<uint32_t>> prompts() {
    const References refs = read_references(GetParam().folder);
    const auto a = refs.get<uint32_t>("prompt_a"), b = refs.get<uint32_t>("prompt_b");
    const auto part = [](const std::vector<uint32_t>& all, size_t count) {
      return std::vector<uint32_t>(all.begin(),
                                   all.begin() + static_cast<ptrdiff_t>(std::min(count, all.size())));
    };
    return {a, part(b, 23), part(b, 1), part(b, 17), part(a, 4)};
  }

  // The tokens that each prompt gets from plans of one sequence.
  Wanted alone() {
    const auto runner = load(0);
    Wanted out;
    for (const std::vector<uint32_t>& prompt : prompts()) {
      GenerateOptions options;
      options.sampling.temperature = 0;
      options.max_tokens = kNew;
      const Generation result = one_answer(*runner, prompt, options);
      out.emplace_back(result.tokens.begin(), result.tokens.end());
    }
    return out;
  }

  void begin(model::SequencePlans& plans, Sequence& sequence, size_t cached) {
    sequence.fed = cached;
    ASSERT_TRUE(plans.begin(sequence.slot, {.max_tokens = kNew}, std::span(sequence.text).first(cached)));
    ASSERT_TRUE(plans.map(sequence.slot, 0, sequence.blocks));
  }

  std::vector<uint32_t> collect(model::SequencePlans& plans, const Result<model::Ticket>& ticket) {
    EXPECT_TRUE(ticket) << ticket.error().message();
    if (!ticket) return {};
    auto tokens = gpu::run_to_completion(device(), plans.tokens(*ticket));
    EXPECT_TRUE(tokens) << tokens.error().message();
    return tokens ? *tokens : std::vector<uint32_t>();
  }

  static void deal(std::span<const uint32_t> tokens, uint32_t slots, std::span<Sequence*> sequences) {
    for (size_t at = 0; at < tokens.size(); at += slots) {
      for (Sequence* sequence : sequences) {
        const uint32_t token = tokens[at + sequence->slot];
        if (token == kernels::kNoToken) continue;
        sequence->chosen.push_back(token);
        sequence->text.push_back(token);
      }
    }
  }

  // Runs all to their end; a sequence joins every second step, and its prompt comes in pieces of `piece` tokens.
  void run(model::SequencePlans& plans, std::vector<Sequence>& sequences, size_t piece) {
    for (size_t turn = 0;; ++turn) {
      std::vector<uint32_t> decoding;
      std::vector<model::Piece> pieces;
      std::vector<Sequence*> there;
      for (size_t i = 0; i < sequences.size() && i <= turn / 2; ++i) {
        Sequence& sequence = sequences[i];
        if (sequence.ended()) continue;
        there.push_back(&sequence);
        if (sequence.decodes()) {
          decoding.push_back(sequence.slot);
          continue;
        }
        const size_t count = std::min(piece, sequence.prompt - sequence.fed);
        pieces.push_back({.slot = sequence.slot,
                          .pos = static_cast<uint32_t>(sequence.fed),
                          .tokens = std::span(sequence.text).subspan(sequence.fed, count),
                          .sample = sequence.fed + count == sequence.prompt});
        sequence.fed += count;
      }
      if (there.empty() && turn / 2 >= sequences.size()) return;
      if (there.empty()) continue;
      deal(collect(plans,
                   pieces.empty() ? plans.decode(decoding, {.steps = 3}) : plans.step(decoding, pieces)),
           plans.max_sequences(), there);
      ASSERT_LT(turn, 400u);
    }
  }

  std::vector<Sequence> sequences_of(model::SequencePlans& plans) {
    std::vector<uint32_t> blocks(plans.block_count());
    std::iota(blocks.begin(), blocks.end(), 0);
    std::ranges::shuffle(blocks, std::mt19937(7));
    std::vector<Sequence> out;
    const uint32_t each = kCtx / kBlockLen;
    for (const std::vector<uint32_t>& prompt : prompts()) {
      const size_t i = out.size();
      Sequence sequence{
          .text = prompt, .prompt = prompt.size(), .slot = static_cast<uint32_t>((i * 3 + 1) % kSlots)};
      sequence.blocks.assign(blocks.begin() + static_cast<ptrdiff_t>(i * each),
                             blocks.begin() + static_cast<ptrdiff_t>((i + 1) * each));
      out.push_back(std::move(sequence));
    }
    return out;
  }
};

void Sequences::expect_same_in_company(model::SequencePlans& plans, const Wanted& wanted) {
  for (const size_t piece : {3u, 9u}) {
    std::vector<Sequence> sequences = sequences_of(plans);
    for (Sequence& sequence : sequences) begin(plans, sequence, 0);
    run(plans, sequences, piece);
    for (size_t i = 0; i < sequences.size(); ++i) {
      EXPECT_EQ(sequences[i].chosen, wanted[i]) << "sequence " << i << ", pieces of " << piece;
    }
  }
}

// One begins after blocks that another wrote, a third after a copy of both, whose last block is not full.
void Sequences::expect_same_behind_shared_and_copied_blocks(model::SequencePlans& plans,
                                                            const Wanted& wanted) {
  std::vector<Sequence> sequences = sequences_of(plans);
  std::vector<Sequence> first{sequences[1]};
  begin(plans, first[0], 0);
  run(plans, first, 9);
  EXPECT_EQ(first[0].chosen, wanted[1]);

  Sequence sharing = sequences[1], copying = sequences[1];
  sharing.slot = sequences[2].slot;
  sharing.blocks = sequences[2].blocks;
  std::copy_n(first[0].blocks.begin(), 2, sharing.blocks.begin());  // 16 of its 23 tokens
  copying.slot = sequences[3].slot;
  copying.blocks = sequences[3].blocks;
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(plans.copy_block(first[0].blocks[i], copying.blocks[i]));
  begin(plans, sharing, 2 * kBlockLen);
  begin(plans, copying, 22);
  std::vector<Sequence> both{sharing, copying};
  run(plans, both, 4);
  EXPECT_EQ(both[0].chosen, wanted[1]);
  EXPECT_EQ(both[1].chosen, wanted[1]);
}

void Sequences::expect_same_behind_restored_blocks(model::SequencePlans& plans, const Wanted& wanted) {
  std::vector<Sequence> sequences = sequences_of(plans);
  std::vector<Sequence> one{sequences[1]};
  begin(plans, one[0], 0);
  run(plans, one, 9);
  std::vector<std::vector<uint8_t>> saved;
  for (size_t i = 0; i < 2; ++i) {
    auto bytes = gpu::run_to_completion(device(), plans.read_block(one[0].blocks[i]));
    ASSERT_TRUE(bytes) << bytes.error().message();
    saved.push_back(std::move(*bytes));
  }
  Sequence again = sequences[1];
  again.blocks = sequences[4].blocks;
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(gpu::run_to_completion(device(), plans.write_block(again.blocks[i], saved[i])));
  }
  begin(plans, again, 2 * kBlockLen);
  std::vector<Sequence> restored{again};
  run(plans, restored, 9);
  EXPECT_EQ(restored[0].chosen, wanted[1]);
}

TEST_P(Sequences, GetInCompanyWhatTheyGetAlone) {
  const Wanted wanted = alone();
  const auto runner = load(kSlots);
  ASSERT_TRUE(runner);
  const uint64_t made = device().counters().buffers_created + device().counters().bind_groups_created;
  expect_same_in_company(*runner->sequences(), wanted);
  record_shown(runner->config().family, {.lane = GetParam().lane.c_str(), .feature = "batch"});
  if (runner->sequences()->has_states()) return;  // not in blocks: recurrent_model_test
  expect_same_behind_shared_and_copied_blocks(*runner->sequences(), wanted);
  expect_same_behind_restored_blocks(*runner->sequences(), wanted);
  EXPECT_EQ(device().counters().buffers_created + device().counters().bind_groups_created, made);
  record_shown(runner->config().family, {.lane = GetParam().lane.c_str(), .feature = "prefix_cache"});
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const fs::path folder(info.param.folder);
  std::string name =
      folder.parent_path().filename().string() + "_" + folder.filename().string() + "_" + info.param.lane;
  if (info.param.cache == kernels::CacheFormat::kQ8_0) name += "_q8_0";
  std::ranges::replace_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Sequences, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace doppler
