// Several dense layers of one row in one dispatch: GROUPS workgroups, which must run together, walk through the stages
//   q, k, v | attention | output + residual | gate and up | down + residual
// of each layer and hand each other what a stage makes (persistent_exchange). No workgroup waits for all others: each
// waits for the words it reads. Before it waits it asks for the first weights of the stage.
// The residual stream stays where its rows are made; the input is the residual stream `row`, the output that and the
// begun norm of the next reader, in y_q8.
// In probe mode the workgroups are only counted (persistent_arrive).
// Error: of a step of the dp4a lane, with q, k and v rounded to 16 significant bits on their way.
// This is one long kernel, and a multiprocessor has room for little more than 100 KB of code: with loops unrolled by the
// compiler an H200 took twice as long. Hence one(), units by fours, and no loop that waits for more than one word.
// Read next: persistent_stage, persistent_product, persistent_outputs, persistent_attention. Contract: layers.h.
//!import common/step_state
//!import persistent/persistent_outputs
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
const kLayerQuads = 4u * kStageQuads + 1u;

// layers.cpp: DispatchWords and LayerWords.
struct Table {
  count: u32,       // of layers
  first_norm: u32,  // of the first of them, in `vectors`
  exchange: u32,    // where its words begin
  one: u32,
  layers: array<vec4<u32>, kLayerQuads * MOST_LAYERS>,
}

// 1, which no compiler knows: loops that count with it are not unrolled.
fn one() -> u32 { return table.one; }

var<workgroup> start: vec4<u32>;

fn layer_words(layer: u32) -> u32 { return table.exchange + layer * EXCHANGE_LAYER; }

// Where a stage's input lies in the exchange, how many blocks it has, and whether they bring sums of squares.
struct Input {
  at: u32,
  blocks: u32,
  has_squares: bool,
}

fn input_of(layer: u32, number: u32) -> Input {
  let words = layer_words(layer);
  if (number == kQkv) { return Input(words - EXCHANGE_LAYER + DOWN_AT, kHiddenBlocks, true); }
  if (number == kOut) { return Input(words + Y_AT, N_HEADS * HEAD_DIM / 16u, false); }
  if (number == kGate) { return Input(words + OUT_AT, kHiddenBlocks, true); }
  return Input(words + GATE_AT, kFfnBlocks, false);
}

fn make_heads(local: u32, lane: u32, group: u32, layer: u32) {
  let places = table.layers[kLayerQuads * layer + 4u * kStageQuads];
  keys_at = places.x;
  values_at = places.y;
  qkv_at = layer_words(layer);
  sent_at = layer_words(layer) + Y_AT;
  workgroupBarrier();  // q, k and v of this workgroup are sent
  for (var head = group; head < N_HEADS; head += GROUPS * one()) { attend(head, local, lane); }
}

// A stage's part of the table, see StageWords in layers.cpp.
struct Place {
  first: vec2<u32>,  // where plane 0 of a matrix begins in `weights`, and plane 1 in `scales`
  other: vec2<u32>,  // of the matrix in the other format, whose items are those from `split` on
  split: u32,
  gain: u32,         // the norm's weight, in `vectors`
}

fn place_of(layer: u32, number: u32) -> Place {
  let at = kLayerQuads * layer + kStageQuads * number;
  let a = table.layers[at];
  let b = table.layers[at + 1u];
  return Place(a.xy, a.zw, b.x, b.y);
}

fn wait_for_x(local: u32, layer: u32, number: u32) {
  if (layer > 0u || number > kQkv) {
    let input = input_of(layer, number);
    receive_x(local, input.at, input.blocks, input.has_squares);
  }
}

fn make_qkv(local: u32, group: u32, layer: u32) {
  let place = place_of(layer, kQkv);
  let stage = kQkvStage;
  for (var turn = 0u; turn < turns_of(stage); turn += one()) {
    if (turn > 0u) { workgroupBarrier(); }  // partial is free
    // Of this turn's items those in the first format, then the rest.
    let items = items_of(stage, group, turn);
    let own = items_before(place.split, group);
    let begun = turn * stage.each;
    let own_items = min(own - min(own, begun), items);
    let first = begun * GROUPS + group;
    let other_first = (begun + own_items) * GROUPS + group - place.split;
    let four = take_first(stage, place.first, local, first, own_items * stage.units_each);
    var other_four: other_Four;
    if (HAS_OTHER && own_items < items) {
      other_four = other_take_first(stage, place.other, local, other_first, (items - own_items) * stage.units_each);
    }
    if (turn == 0u) { wait_for_x(local, layer, kQkv); }
    multiply(stage, place.first, local, first, own_items * stage.units_each, 0u, four);
    if (HAS_OTHER && own_items < items) {
      other_multiply(stage, place.other, local, other_first, (items - own_items) * stage.units_each, own_items, other_four);
    }
    workgroupBarrier();  // partial
    send_qkv(local, group, turn, layer_words(layer));
  }
}

fn make_out(local: u32, lane: u32, group: u32, layer: u32) {
  let place = place_of(layer, kOut);
  let stage = kOutStage;
  for (var turn = 0u; turn < turns_of(stage); turn += one()) {
    if (turn > 0u) { workgroupBarrier(); }  // partial and values are free
    let first = turn * stage.each * GROUPS + group;
    let count = items_of(stage, group, turn) * stage.units_each;
    let four = take_first(stage, place.first, local, first, count);
    let gain = gain_of(stage, local, group, turn, place.gain);
    if (turn == 0u) {
      make_heads(local, lane, group, layer);
      wait_for_x(local, layer, kOut);
    }
    multiply(stage, place.first, local, first, count, 0u, four);
    workgroupBarrier();  // partial
    put_hidden(stage, local, lane, group, turn, gain, layer_words(layer) + OUT_AT, false);
  }
}

fn make_gated(local: u32, lane: u32, group: u32, layer: u32) {
  let place = place_of(layer, kGate);
  let stage = kGateStage;
  for (var turn = 0u; turn < turns_of(stage); turn += one()) {
    if (turn > 0u) { workgroupBarrier(); }  // partial and values are free
    let first = turn * stage.each * GROUPS + group;
    let count = items_of(stage, group, turn) * stage.units_each * stage.sums;
    let four = take_first(stage, place.first, local, first, count);
    if (turn == 0u) { wait_for_x(local, layer, kGate); }
    multiply(stage, place.first, local, first, count, 0u, four);
    workgroupBarrier();  // partial
    put_gated(local, lane, group, turn, layer_words(layer) + GATE_AT);
  }
}

fn make_down(local: u32, lane: u32, group: u32, layer: u32) {
  let place = place_of(layer, kDown);
  let stage = kDownStage;
  let is_other = HAS_OTHER && place.split == 0u;
  for (var turn = 0u; turn < turns_of(stage); turn += one()) {
    if (turn > 0u) { workgroupBarrier(); }  // partial and values are free
    let first = turn * stage.each * GROUPS + group;
    let count = items_of(stage, group, turn) * stage.units_each;
    var four: Four;
    var other_four: other_Four;
    if (is_other) {
      other_four = other_take_first(stage, place.other, local, first, count);
    } else {
      four = take_first(stage, place.first, local, first, count);
    }
    let gain = gain_of(stage, local, group, turn, place.gain);
    if (turn == 0u) { wait_for_x(local, layer, kDown); }
    if (is_other) {
      other_multiply(stage, place.other, local, first, count, 0u, other_four);
    } else {
      multiply(stage, place.first, local, first, count, 0u, four);
    }
    workgroupBarrier();  // partial
    put_hidden(stage, local, lane, group, turn, gain, layer_words(layer) + DOWN_AT, layer + 1u == table.count);
  }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(subgroup_id) subgroup: u32,
        @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_invocation_id) lane: u32) {
  let local = subgroup * subgroup_size + lane;
  let group = group_id.x;
  if (local == 0u) {
    start = vec4<u32>(atomicLoad(&exchange[kMode]), atomicLoad(&exchange[kFault]),
                      atomicLoad(&exchange[kCounters + group]), 0u);
  }
  let begun = workgroupUniformLoad(&start);
  if (begun.x == kModeProbe) {
    if (local == 0u) { arrive(GROUPS); }
    workgroupBarrier();
    return;
  }
  tag = (begun.z + 1u) << 24u;
  patience = select(PATIENCE, 0u, begun.y != 0u);
  let own = kOutStage;
  for (var turn = 0u; turn < turns_of(own); turn += one()) {
    if (is_output(own, group, turn, local)) {
      residual[turn * own.each * own.rows + local] = row[row_of(own, group, turn, local)];
    }
  }
  begin_x(local, table.first_norm);
  for (var layer = 0u; layer < table.count; layer++) {
    make_qkv(local, group, layer);
    make_out(local, lane, group, layer);
    make_gated(local, lane, group, layer);
    make_down(local, lane, group, layer);
  }
  store_row(local, group, place_of(table.count - 1u, kDown).gain);
  if (patience == 0u) { atomicStore(&exchange[kFault], 1u); }
  if (local == 0u) { atomicStore(&exchange[kCounters + group], begun.z + 1u); }
}
