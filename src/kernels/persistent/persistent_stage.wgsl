// The way in which a stage (a product of a layer) is dealt. Rows are dealt in items of `rows` (8, 16 or 32), item i to
// workgroup i % GROUPS, and a workgroup makes `each` items at a time (a turn). An invocation owns one row of an item
// and every (THREADS / rows)-th unit of 32 columns, `units_each` units. A gated stage makes two sums a row; all rows of
// the first come before those of the second. Sums of neighbours in a subgroup are added there; `partial` holds the
// rest.
// Consts: THREADS, SUBGROUP, GROUPS, PARTIALS, and those of the stages.
struct Stage {
  rows: u32,
  items: u32,
  units: u32,
  units_each: u32,
  sums: u32,
  each: u32,
}

// Numbers of the stages.
const kQkv = 0u;
const kOut = 1u;
const kGate = 2u;
const kDown = 3u;

const kHiddenUnits = HIDDEN / 32u;
const kQkvStage = Stage(QKV_ROWS, QKV_ITEMS, kHiddenUnits, QKV_UNITS_EACH, 1u, QKV_EACH);
const kOutStage = Stage(OUT_ROWS, OUT_ITEMS, N_HEADS * HEAD_DIM / 32u, OUT_UNITS_EACH, 1u, OUT_EACH);
const kGateStage = Stage(GATE_ROWS, GATE_ITEMS, kHiddenUnits, GATE_UNITS_EACH, 2u, GATE_EACH);
const kDownStage = Stage(OUT_ROWS, OUT_ITEMS, FFN / 32u, DOWN_UNITS_EACH, 1u, OUT_EACH);

// The numbers of a workgroup's items below `end`, and of its items in a turn.
fn items_before(end: u32, group: u32) -> u32 { return (end + GROUPS - 1u - group) / GROUPS; }
fn items_of(stage: Stage, group: u32, turn: u32) -> u32 {
  let own = items_before(stage.items, group);
  return min(own - min(own, turn * stage.each), stage.each);
}
fn turns_of(stage: Stage) -> u32 { return (stage.items + GROUPS * stage.each - 1u) / (GROUPS * stage.each); }

// Output `t` of a turn: is there one, and which row of the stage it is.
fn is_output(stage: Stage, group: u32, turn: u32, t: u32) -> bool {
  return t / stage.rows < items_of(stage, group, turn);
}
fn row_of(stage: Stage, group: u32, turn: u32, t: u32) -> u32 {
  return ((turn * stage.each + t / stage.rows) * GROUPS + group) * stage.rows + t % stage.rows;
}

var<workgroup> partial: array<f32, PARTIALS>;

fn parts_of(stage: Stage) -> u32 { return min(THREADS / stage.rows, THREADS / SUBGROUP); }

fn put_partial(stage: Stage, local: u32, index: u32, own: f32) {
  var sum = own;
  for (var distance = stage.rows; distance < SUBGROUP; distance <<= 1u) { sum += subgroupShuffleXor(sum, distance); }
  if (stage.rows >= SUBGROUP || local % SUBGROUP < stage.rows) {
    let part = local / max(stage.rows, SUBGROUP);
    partial[(index * parts_of(stage) + part) * stage.rows + local % stage.rows] = sum;
  }
}

fn reduced_sum(stage: Stage, index: u32, t: u32) -> f32 {
  let parts = parts_of(stage);
  let first = index * parts * stage.rows + t % stage.rows;
  var sum = 0.0;
  for (var part = 0u; part < parts; part++) { sum += partial[first + part * stage.rows]; }
  return sum;
}
