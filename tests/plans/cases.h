// The plans that are digested: models x lanes x capability fixtures, generation and logits; and how one plan is
// recorded.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fixtures.h"
#include "formats/checkpoint.h"
#include "gpu/plan_text.h"

namespace doppler::plans {

// Golden models by their path in the test data ("families_llama/llama/bf16"), "storyteller" (the shipped GGUF with
// K-quants), synthetic shapes ("llama-3.1-8b:q4_k_m").
std::vector<std::string> model_names();
std::span<const std::string_view> lane_names(std::string_view model);

// Errors: no such model, or its files cannot be read.
Result<std::unique_ptr<formats::Checkpoint>> open_model(std::string_view name);

struct Case {
  std::string_view model, lane;
  const Fixture* fixture = nullptr;
};

// Called with the plans of one load, valid during the call.
using PlanVisitor = std::function<void(gpu::PlanText& text, std::span<const gpu::Plan> plans)>;

// Loads the model twice on a RecordingDevice, for generation and for logits, as the program does: golden models with
// their 64 tokens of context, the others with the default of 4096. Where one cannot be loaded, `refused` is called with
// the plans' kind ("generation", "logits") and the error's sentence.
void record(const Case& wanted, const formats::Checkpoint& checkpoint, const PlanVisitor& visit,
            const std::function<void(std::string_view kind, const std::string& sentence)>& refused);

}  // namespace doppler::plans
