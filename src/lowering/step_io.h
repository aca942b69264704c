// The buffers that the recording of a forward pass reads and writes besides weights, and which plan it is for.
#pragma once

#include <vector>

#include "kernels/context.h"
#include "kernels/rope/rope.h"

namespace doppler::lowering {

// The rows that get logits: none (a prompt's inner chunks), the last (before sampling), those that the tables of many
// sequences name, or all (perplexity, `logits`, decode steps of many sequences).
enum class LogitsRows : uint8_t { kNone, kLast, kSampled, kAll };

// The buffers of a decode plan whose layers may be one dispatch (kernels/persistent).
struct PersistentIo {
  kernels::TensorView exchange;  // invalid: the chain is recorded
  uint32_t groups = 0;           // workgroups that are co-resident
};

// The recurrent states of a layer (kernels/recurrent/causal_conv.h, scan.h); invalid where it has none.
struct StateView {
  kernels::TensorView conv, scan;
};

// Experts in slots (model/expert_pager.h): the host reads the routes of each layer, and writes those of slots, and
// their groups, before the products that read them.
struct PagedRoutes {
  kernels::TensorView routes, slot_routes, slot_groups;  // invalid: all experts lie in GPU memory
};

// The next-token layer of a plan that drafts; without tokens the plan leaves it out.
struct NextIo {
  kernels::TensorView tokens;  // u32 [max_rows]: the token after each row's
  kernels::TensorView logits;  // f32 [rows that get logits, vocab_size]
};

// Pictures' values for the rows of a prompt that stand for them.
struct ImageIo {
  kernels::TensorView images;  // f32 [n_images, stride]
  kernels::TensorView places;  // u32 [max_rows]: kernels::ImageRows
  uint32_t n_images = 0, stride = 0;
};

// The positions by which rows rotate: kernels::RopeKv.
struct RopeIo {
  kernels::RopePlaces places = kernels::RopePlaces::kRow;
  kernels::RopeAxes axes;
  kernels::TensorView table;  // in place of the graph's own; kRow: invalid
};

// The keys that each row sees, instead of those before it: kernels::Attention::spans.
struct SpansIo {
  kernels::TensorView all;      // of layers without a window
  kernels::TensorView windows;  // of layers that slide
};

// Entries of a learned table that each row gets: kernels::TableRows.
struct TapsIo {
  kernels::TensorView taps;
  uint32_t taps_each = 0;
};

struct StepIo {
  // A decode plan begins with these, and every plan that chooses a token ends with them (kernels/step/next.h): the
  // residual stream of its one row, and the first norm of that.
  kernels::TensorView row, normed_row;
  bool begins_with_row = false;           // else with tokens
  kernels::TensorView tokens;             // u32 [max_rows]
  kernels::TensorView token_types;        // u32 [max_rows], of models that have types
  std::vector<kernels::CacheView> cache;  // one a layer; the views of layers without a cache are invalid
  std::vector<StateView> states;          // one a layer
  LogitsRows logits_rows = LogitsRows::kLast;
  uint32_t max_keys = 0;  // of a decode plan: the longest sequence it is replayed with; 0: the context
  bool greedy = false;    // only the best logit is needed
  // f32 [vocab_size], or [rows, vocab_size] with LogitsRows::kSampled (rows: slots) and kAll (rows of the plan).
  kernels::TensorView logits;
  // Many sequences: a step state whose `rows` counts those that choose a token, and the slots that are attended each on
  // their own (kernels::Attention::single_rows).
  kernels::TensorView sampled_state;
  uint32_t single_rows = 0;
  bool attends_each_row = false;  // likewise all rows, also those of pieces
  PersistentIo persistent;
  PagedRoutes paged = {};
  NextIo next = {};
  bool keeps_rows = false;  // recurrent states are kept after each row of the plan (kernels::DeltaStep::rows)
  std::vector<kernels::TensorView> inputs = {};  // f32 [max_rows, columns], by graph::Input::index
  TapsIo taps = {};
  ImageIo images = {};
  RopeIo rope = {};
  SpansIo spans = {};
  kernels::TensorView hidden;  // optional f32 [n_layers + 1, max_rows, hidden_dim]: the residual stream
};

// Where the head left its result: all logits, or of each tile the best (kernels::TileArgmax).
struct Logits {
  kernels::TensorView all, best;
  uint32_t best_count = 0;
};

}  // namespace doppler::lowering
