// q, k and v on one head of latents: see latent/latent.h. One invocation copies one value of a row (y of the grid).
// Nothing is shared. Consts: N_HEADS, NOPE_DIM, ROPE_DIM, RANK, and the places in kv: KV_STRIDE, LATENT, KEY.
@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> absorbed: array<f32>;
@group(0) @binding(2) var<storage, read> kv: array<f32>;
@group(0) @binding(3) var<storage, read_write> qkv: array<f32>;

const kHead = ROPE_DIM + RANK;
const kColumns = (N_HEADS + 2u) * kHead;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let row = group.y;
  let i = group.x * WORKGROUP + t;
  if (i >= kColumns) { return; }
  let head = i / kHead;
  let d = i % kHead;
  let rotates = d < ROPE_DIM;
  var value = 0.0;
  if (head < N_HEADS) {
    let of_row = row * N_HEADS + head;
    if (rotates) {
      value = q[of_row * (NOPE_DIM + ROPE_DIM) + NOPE_DIM + d];
    } else {
      value = absorbed[of_row * RANK + d - ROPE_DIM];
    }
  } else if (!rotates) {
    value = kv[row * KV_STRIDE + LATENT + d - ROPE_DIM];
  } else if (head == N_HEADS) {
    value = kv[row * KV_STRIDE + KEY + d];
  }
  qkv[row * kColumns + i] = value;
}
