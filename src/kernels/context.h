// The context of every kernels::record(ctx, Op): the plan being recorded, the policy that chooses variants, and the
// buffers that all steps share. Read next: variant.h (choice), common/step_state.h (what the GPU advances),
// linear/linear.h (the main op).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/plan_builder.h"
#include "kernels/common/step_tables.h"

namespace doppler::kernels {

using gpu::TensorView;

// The kind of arithmetic that a variant does; a policy allows some kinds. A forced variant of another kind is an error.
enum class Lane : uint8_t {
  kPortable,   // f32 arithmetic, core WebGPU limits, no optional feature
  kSubgroups,  // f32 arithmetic with subgroup operations
  kDp4a,       // activations quantised to 8 bits in blocks of 16, integer dot products
  kMatrix,     // subgroup matrices: f16 inputs, f32 accumulation
  // decode's layers in one dispatch whose workgroups are co-resident (persistent/); only if asked for or tuned
  kPersistent,
};
const char* lane_name(Lane lane);

struct TuningTable;  // tuning.h

struct Policy {
  std::string name = "fast";  // what --lane said: exact, fast or a lane's name
  uint32_t lanes = 0x0F;      // bit per Lane: all but kPersistent
  std::map<std::string, std::string>
      forced;  // operation ("matvec") -> variant name, from --kernel op=variant
  std::shared_ptr<const TuningTable> tuning;  // measured choices that go before the tables; null: none

  bool allows(Lane lane) const { return (lanes >> static_cast<uint32_t>(lane)) & 1u; }
  void allow(Lane lane) { lanes |= 1u << static_cast<uint32_t>(lane); }
};
// "exact": portable and subgroups (f32 arithmetic, weights as stored). "fast": all but persistent. "persistent": all. A
// lane's name: that lane and portable. Anything else is an error that lists the names.
Result<Policy> make_policy(std::string_view lane);

struct Refusal {
  std::string variant;
  std::string reason;
};

// A number of a kernel that tuning may change (tuning.h, tunable()).
struct ChosenConstant {
  std::string name;
  uint32_t value = 0, standard = 0;  // in use; without tuning
  std::vector<uint32_t> alternatives;
};

// The variant of an operation and the reasons against the better ones: `kernels --explain`, profile and bench print
// these; equal choices are kept once with a count.
struct Choice {
  std::string operation;  // "matvec"
  std::string shape;      // "q4_k 4096x14336"
  std::string variant;    // "matvec.q4_k.subgroup.r4"
  std::vector<Refusal> refused;
  bool forced = false;
  uint32_t uses = 1;
  std::vector<std::string> others;        // rows below it in the table that could be used too
  std::vector<ChosenConstant> constants;  // of this variant
  std::string table_variant;              // what the table ranks first, if that is not this one
  std::string tuning_refused;             // why a measured choice is not used; empty: it is, or there is none
};

struct Context {
  gpu::PlanBuilder& plan;
  const Policy& policy;
  std::vector<Choice>& choices;
  TensorView state;       // StepState (common/step_state.h)
  uint32_t max_rows = 1;  // of the plan being recorded: 1 for decode, the chunk for prefill
  std::string op_label;   // set by lowering before each op: "blk.3.attn_q"
  StepTables tables;      // of plans for many sequences; sequences 0: plans of one
  // Grids are of so many rows, not of as many as the replay has, after a selection of rows. 0: of the replay's.
  uint32_t fixed_rows = 0;
  // Products are chosen as for plans of so many rows at least, so that what a row gets does not depend on how many
  // there are.
  uint32_t least_rows = 0;
  // The model drafts (step/draft.h), one sequence only: recurrent states have two slots, one after each row of a
  // drafting step, and every step begins with the state of slot StepState::kept_row.
  bool drafts = false;
};

}  // namespace doppler::kernels
