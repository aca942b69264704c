// Rotates heads where they lie, and scales them by their position. One invocation turns one pair of one head of one row (y of
// the grid). Nothing is shared. Error: absolute 4e-7 of the pair's length.
//!import common/one_sequence
//!import rope/rope_pair
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read> table: array<vec2u>; // (low, high) of each pair's step

const kPairs = (HEAD_DIM + 1u) / 2u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= N_HEADS * kPairs) { return; }
  let pair = id.x % kPairs;
  let base = id.y * STRIDE + COLUMN + id.x / kPairs * HEAD_DIM;
  let places = pair_places(pair);
  let position = row_position(id.y);
  var values = vec2f(x[base + places.x], 0.0);
  if (places.y < HEAD_DIM) { values.y = x[base + places.y]; }
  var step = vec2u();
  if (pair < ROTARY_DIM / 2u) { step = table[pair]; }
  values = rotate_pair(id.y, values, pair, position, step);
  if (QUERY_BETA != 0.0) {
    values *= 1.0 + QUERY_BETA * log(1.0 + f32(position / QUERY_CTX_LEN));
  }
  x[base + places.x] = values.x;
  if (places.y < HEAD_DIM) { x[base + places.y] = values.y; }
}
