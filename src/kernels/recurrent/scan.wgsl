// A linear recurrence over the rows of each run, with the state of a head S [KEY_DIM, VALUE_DIM] in registers:
//   S = decay S + key addition^T,  y = S^T query
// One workgroup walks COLUMNS columns of one head (x of the grid) of one run (y). An invocation has one column of S and
// one of SPLITS parts of the keys. Rows come in tiles of TILE_ROWS. Shared: keys, queries and numbers of a tile's rows;
// partial dot products, two rows in turn.
// scan_delta and scan_ssd define decay, rate and addition. Error: relative L2 < 1e-5 over 64 rows.
//!import recurrent/runs_one
//!import recurrent/scan_step
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> x: array<f32>; // rows of X_STRIDE: queries, keys and values
@group(0) @binding(2) var<storage, read> gates: array<f32>; // rows of GATES_STRIDE
@group(0) @binding(3) var<storage, read> vectors: array<f32>;
@group(0) @binding(4) var<storage, read_write> kept: array<f32>; // [slots, HEADS, KEY_DIM, VALUE_DIM]
@group(0) @binding(5) var<storage, read_write> y: array<f32>; // [rows, HEADS * VALUE_DIM]

const kQuads = (KEY_DIM + 4u * SPLITS - 1u) / (4u * SPLITS); // of an invocation
const kRowQuads = kQuads * SPLITS; // of a key, padded by zeros
const kWorkgroup = COLUMNS * SPLITS;

var<workgroup> keys: array<vec4f, TILE_ROWS * kRowQuads>;
var<workgroup> queries: array<vec4f, TILE_ROWS * kRowQuads>;
var<workgroup> steps: array<Step, TILE_ROWS>;
var<workgroup> key_queries: array<f32, TILE_ROWS>; // key . query, both as they come
var<workgroup> partials: array<vec2f, 2u * kWorkgroup>;

fn quad_at(at: u32, quad: u32) -> vec4f {
  var values = vec4f();
  for (var j = 0u; j < 4u; j++) {
    if (quad * 4u + j < KEY_DIM) {
      values[j] = x[at + quad * 4u + j];
    }
  }
  return values;
}

fn load_tile(first: u32, rows: u32, head: u32, t: u32) {
  let key_head = select(head / (HEADS / KEY_HEADS), head % KEY_HEADS, IS_TILED);
  for (var i = t; i < rows * kRowQuads; i += kWorkgroup) {
    let at = (first + i / kRowQuads) * X_STRIDE + key_head * KEY_DIM;
    keys[i] = quad_at(at + KEY_COLUMN, i % kRowQuads);
    queries[i] = quad_at(at + QUERY_COLUMN, i % kRowQuads);
  }
  workgroupBarrier(); // keys, queries
  for (var row = t; row < rows; row += kWorkgroup) {
    var key_squares = 0.0;
    var query_squares = 0.0;
    var both = 0.0;
    for (var i = row * kRowQuads; i < (row + 1u) * kRowQuads; i++) {
      key_squares += dot(keys[i], keys[i]);
      query_squares += dot(queries[i], queries[i]);
      both += dot(keys[i], queries[i]);
    }
    steps[row] = step_of(first + row, head, key_squares, query_squares);
    key_queries[row] = both;
  }
  workgroupBarrier(); // steps, key_queries
}

@compute @workgroup_size(COLUMNS * SPLITS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let run = run_at(group.y);
  let head = group.x / kGroupsOfHead;
  let column = group.x % kGroupsOfHead * COLUMNS + t % COLUMNS;
  let split = t / COLUMNS;
  let is_column = column < VALUE_DIM;
  let from_first = ((run.from_slot * HEADS + head) * KEY_DIM + split * kQuads * 4u) * VALUE_DIM + column;
  let kept_first = ((run.slot * HEADS + head) * KEY_DIM + split * kQuads * 4u) * VALUE_DIM + column;

  var s: array<vec4f, kQuads>;
  for (var i = 0u; i < kQuads; i++) {
    var quad = vec4f();
    for (var j = 0u; j < 4u; j++) {
      let key = i * 4u + j;
      if (is_column && run.advances && run.position != 0u && split * kQuads * 4u + key < KEY_DIM) {
        quad[j] = kept[from_first + key * VALUE_DIM];
      }
    }
    s[i] = quad;
  }

  for (var done = 0u; done < run.rows; done += TILE_ROWS) {
    let rows = min(TILE_ROWS, run.rows - done);
    load_tile(run.first + done, rows, head, t);
    for (var r = 0u; r < rows; r++) {
      let row = run.first + done + r;
      let quads = r * kRowQuads + split * kQuads;
      var dots = vec2f();
      for (var i = 0u; i < kQuads; i++) {
        dots += vec2f(dot(s[i], keys[quads + i]), dot(s[i], queries[quads + i]));
      }
      if (SPLITS > 1u) {
        let turn = r % 2u * kWorkgroup;
        partials[turn + t] = dots;
        workgroupBarrier(); // partials of this row; those of the row before may still be read
        dots = vec2f();
        for (var i = 0u; i < SPLITS; i++) {
          dots += partials[turn + i * COLUMNS + t % COLUMNS];
        }
      }
      let step = steps[r];
      var value = 0.0;
      if (is_column) {
        value = x[row * X_STRIDE + VALUE_COLUMN + head * VALUE_DIM + column];
      }
      let added = addition(value, step.decay * step.key_scale * dots.x, step.rate) * step.key_scale;
      if (is_column && split == 0u) {
        y[(row * HEADS + head) * VALUE_DIM + column] =
            step.query_scale * (step.decay * dots.y + added * key_queries[r]) + direct(head, value);
      }
      for (var i = 0u; i < kQuads; i++) {
        s[i] = step.decay * s[i] + added * keys[quads + i];
      }
    }
    workgroupBarrier(); // the tile is read out
  }

  if (!is_column || !run.advances || run.rows == 0u) {
    return;
  }
  for (var i = 0u; i < kQuads; i++) {
    for (var j = 0u; j < 4u; j++) {
      let key = i * 4u + j;
      if (split * kQuads * 4u + key < KEY_DIM) {
        kept[kept_first + key * VALUE_DIM] = s[i][j];
      }
    }
  }
}

const kGroupsOfHead = (VALUE_DIM + COLUMNS - 1u) / COLUMNS;
