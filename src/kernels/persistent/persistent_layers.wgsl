// Several dense layers of one row in one dispatch: GROUPS workgroups, which must be co-resident, walk through the
// stages
//   q, k, v | attention | output + residual | gate and up | down + residual
// of each layer and hand each other the results of a stage (persistent_exchange). No workgroup waits for all others:
// each waits for the words it reads. Before it waits it begins to load the first weights of the stage.
// The residual stream stays where its rows are made. If norms stand after the branches, every workgroup keeps the whole
// stream instead (persistent_stream, persistent_stream_joined). The input is the residual stream `row`, the output that
// and the deferred norm of the next reader, in y_q8.
// In probe mode the workgroups are only counted (persistent_arrive).
// Error: of a step of the dp4a lane, with q, k and v, and branches that a norm follows, rounded to 16 significant bits
// on their way.
// This is one long kernel, and a multiprocessor has room for little more than 100 KB of code: with loops unrolled by
// the compiler an H200 took twice as long. Therefore the kernel has one(), units by fours, and one loop for all stages.
// A part that only some models have is a fragment in the place of another, or depends on a const.
// Read next: persistent_stage, persistent_product, persistent_outputs, persistent_stream, persistent_attention.
// Contract: layers.h.
//!import common/step_state
//!import persistent/persistent_stream
//!import persistent/persistent_product
//!import persistent/persistent_product as other_ with the same weights
//!import persistent/persistent_attention

@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<uniform> table: Table;
@group(0) @binding(2) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read> vectors: array<f32>;
@group(0) @binding(5) var<storage, read> angles: array<vec2u>;
@group(0) @binding(6) var<storage, read_write> cache: array<Eight>;
@group(0) @binding(7) var<storage, read_write> exchange: array<atomic<u32>>;
@group(0) @binding(8) var<storage, read_write> row: array<f32>;
@group(0) @binding(9) var<storage, read_write> y_q8: array<u32>;

struct Params {
  units: u32,  // what the fragments of weights/ ask for: of the stage under way
}
var<private> params: Params;

const kStageQuads = 2u;  // of the table
const kLayerQuads = 4u * kStageQuads + 2u;

// layers.cpp: DispatchWords and LayerWords.
struct Table {
  count: u32,       // of layers
  first_norm: u32,  // of the first layer, in `vectors`
  exchange: u32,    // where its words begin
  one: u32,
  layers: array<vec4<u32>, kLayerQuads * MOST_LAYERS>,
}

// 1, which no compiler knows: loops that count with it are not unrolled.
fn one() -> u32 { return table.one; }

var<workgroup> start: vec4<u32>;

fn layer_words(layer: u32) -> u32 { return table.exchange + layer * EXCHANGE_LAYER; }

// The place of a stage's input in the exchange, its number of blocks, and whether it comes of the residual stream.
struct Input {
  at: u32,
  blocks: u32,
  is_stream: bool,
}

fn input_of(layer: u32, number: u32) -> Input {
  let words = layer_words(layer);
  if (number == kQkv) { return Input(words - EXCHANGE_LAYER + DOWN_AT, kHiddenBlocks, true); }
  if (number == kOut) { return Input(words + Y_AT, N_HEADS * HEAD_DIM / 16u, false); }
  if (number == kGate) { return Input(words + OUT_AT, kHiddenBlocks, true); }
  return Input(words + GATE_AT, kFfnBlocks, false);
}

fn window_of(layer: u32) -> u32 { return table.layers[kLayerQuads * layer + 4u * kStageQuads].z; }

// Sets the rotation and the norms of a layer's heads, and the places of its parts.
fn begin_heads(layer: u32) {
  let places = table.layers[kLayerQuads * layer + 4u * kStageQuads];
  let more = table.layers[kLayerQuads * layer + 4u * kStageQuads + 1u];
  set_rotation(places.w, bitcast<f32>(more.x));
  qk_norms_at = more.y;
  keys_at = places.x;
  values_at = places.y;
  qkv_at = layer_words(layer);
  sent_at = layer_words(layer) + Y_AT;
}

// A stage's part of the table, see StageWords in layers.cpp.
struct Place {
  first: vec2<u32>,  // where plane 0 of a matrix begins in `weights`, and plane 1 in `scales`
  other: vec2<u32>,  // of the matrix in the other format, whose items are those from `split` on
  split: u32,
  gain: u32,         // the norm's weight, in `vectors`
  branch_gain: u32,  // that of the norm after the branch before
  bias: u32,         // of the first matrix
}

fn place_of(layer: u32, number: u32) -> Place {
  let at = kLayerQuads * layer + kStageQuads * number;
  let a = table.layers[at];
  let b = table.layers[at + 1u];
  return Place(a.xy, a.zw, b.x, b.y, b.z, b.w);
}

// A layer is walked in steps, attention or a turn of a stage each, by one loop, so that the common code of the stages
// exists once.
const kHeads = 4u;  // after the numbers of the stages

fn steps_of_layer() -> u32 {
  return turns_of(kQkvStage) + 1u + turns_of(kOutStage) + turns_of(kGateStage) + turns_of(kDownStage);
}

struct Step {
  number: u32,  // of the stage, or kHeads
  turn: u32,
}

fn step_of(index: u32) -> Step {
  let heads = turns_of(kQkvStage);
  let out = heads + 1u;
  let gate = out + turns_of(kOutStage);
  let down = gate + turns_of(kGateStage);
  if (index < heads) { return Step(kQkv, index); }
  if (index < out) { return Step(kHeads, 0u); }
  if (index < gate) { return Step(kOut, index - out); }
  if (index < down) { return Step(kGate, index - gate); }
  return Step(kDown, index - down);
}

// A workgroup's part of a turn: items of the first matrix and, after them, of the other one.
struct Share {
  first: u32,  // item of the first matrix
  own: u32,    // number of its items
  other_first: u32,
  others: u32,
}

// The stages whose items may be of two formats.
fn is_mixed(number: u32) -> bool { return HAS_OTHER && (number == kQkv || number == kDown); }

fn share_of(stage: Stage, number: u32, group: u32, turn: u32, split: u32) -> Share {
  let items = items_of(stage, group, turn);
  let begun = turn * stage.each;
  if (!is_mixed(number)) { return Share(begun * GROUPS + group, items, 0u, 0u); }
  let before = items_before(split, group);
  let own = min(before - min(before, begun), items);
  return Share(begun * GROUPS + group, own, (begun + own) * GROUPS + group - split, items - own);
}

// The first units of a turn.
struct Taken {
  four: Four,
  other_four: other_Four,
}

fn take(stage: Stage, number: u32, place: Place, local: u32, group: u32, turn: u32) -> Taken {
  let share = share_of(stage, number, group, turn, place.split);
  let each = stage.units_each * stage.sums;
  var taken: Taken;
  taken.four = take_first(stage, place.first, local, share.first, share.own * each);
  if (is_mixed(number)) {
    taken.other_four = other_take_first(stage, place.other, local, share.other_first, share.others * each);
  }
  return taken;
}

fn multiply_taken(stage: Stage, number: u32, place: Place, local: u32, group: u32, turn: u32, taken: Taken) {
  let share = share_of(stage, number, group, turn, place.split);
  let each = stage.units_each * stage.sums;
  multiply(stage, place.first, local, share.first, share.own * each, 0u, taken.four);
  if (is_mixed(number)) {
    other_multiply(stage, place.other, local, share.other_first, share.others * each, share.own, taken.other_four);
  }
}

// Biases of this invocation's output of a turn, loaded before any wait: of a gate and of its up, else one.
fn biases_of(local: u32, group: u32, layer: u32, step: Step, place: Place) -> vec2<f32> {
  if (HAS_QKV_BIAS && step.number == kQkv) {
    let second = table.layers[kLayerQuads * layer + 4u * kStageQuads + 1u].z;
    return vec2<f32>(qkv_bias(row_of(kQkvStage, group, step.turn, local), place, second), 0.0);
  }
  if (HAS_GATE_BIAS && step.number == kGate) {
    return gate_biases(row_of(kGateStage, group, step.turn, local), place.bias);
  }
  if ((HAS_OUT_BIAS && step.number == kOut) || (HAS_DOWN_BIAS && step.number == kDown)) {
    return vec2<f32>(hidden_vector(local, group, step.turn, place.bias), 0.0);
  }
  return vec2<f32>();
}

fn make_step(local: u32, subgroup_invocation: u32, group: u32, layer: u32, step: Step) {
  if (step.number == kHeads) {
    begin_heads(layer);
    make_heads(local, subgroup_invocation, group, layer);
    return;
  }
  let place = place_of(layer, step.number);
  let words = layer_words(layer);
  var taken: Taken;
  switch (step.number) {
    case kQkv: { taken = take(kQkvStage, kQkv, place, local, group, step.turn); }
    case kOut: { taken = take(kOutStage, kOut, place, local, group, step.turn); }
    case kGate: { taken = take(kGateStage, kGate, place, local, group, step.turn); }
    default: { taken = take(kDownStage, kDown, place, local, group, step.turn); }
  }
  let gains = gains_of(local, group, step, place);
  let biases = biases_of(local, group, layer, step, place);
  if (step.turn > 0u) {
    workgroupBarrier();  // partial and values are free
  } else {
    bring_x(local, layer, step.number, gains);
  }
  switch (step.number) {
    case kQkv: { multiply_taken(kQkvStage, kQkv, place, local, group, step.turn, taken); }
    case kOut: { multiply_taken(kOutStage, kOut, place, local, group, step.turn, taken); }
    case kGate: { multiply_taken(kGateStage, kGate, place, local, group, step.turn, taken); }
    default: { multiply_taken(kDownStage, kDown, place, local, group, step.turn, taken); }
  }
  workgroupBarrier();  // partial
  switch (step.number) {
    case kQkv: { send_qkv(local, group, step.turn, biases.x, words); }
    case kGate: { put_gated(local, subgroup_invocation, group, step.turn, biases, words + GATE_AT); }
    default: {
      let is_down = step.number == kDown;
      put_hidden(local, subgroup_invocation, group, step.turn, gains, biases.x, words + select(OUT_AT, DOWN_AT, is_down),
                 is_down && layer + 1u == table.count);
    }
  }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(subgroup_id) subgroup: u32,
        @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_invocation_id) subgroup_invocation: u32) {
  let local = subgroup * subgroup_size + subgroup_invocation;
  let group = group_id.x;
  if (local == 0u) {
    start = vec4<u32>(atomicLoad(&exchange[kMode]), atomicLoad(&exchange[kFault]),
                      atomicLoad(&exchange[COUNTERS_AT + group]), 0u);
  }
  let begun = workgroupUniformLoad(&start);
  if (begun.x == kModeProbe) {
    if (local == 0u) { arrive(GROUPS); }
    workgroupBarrier();
    return;
  }
  tag = (begun.z + 1u) << 24u;
  spins_left = select(SPIN_LIMIT, 0u, begun.y != 0u);
  begin_stream(local, group);
  for (var layer = 0u; layer < table.count; layer++) {
    for (var step = 0u; step < steps_of_layer(); step += one()) { make_step(local, subgroup_invocation, group, layer, step_of(step)); }
  }
  end_stream(local, group);
  if (spins_left == 0u) { atomicStore(&exchange[kFault], 1u); }
  if (local == 0u) { atomicStore(&exchange[COUNTERS_AT + group], begun.z + 1u); }
}
