// Decode attention with subgroup operations, for a q and a cache that rope/ has prepared, and attention of a few rows,
// each on its own (z of the grid): see attention_decode_core. Twin of attention_decode_rope.
//!import attention/attention_decode_core
//!import attention/attention_decode_stored

fn load_before(row: u32, first_head: u32, heads: u32, kv_head: u32, thread: u32) -> u32 { return 0u; }
fn prepare(row: u32, early: u32, kv_head: u32, writes_newest: bool, thread: u32) {}

fn q_at(head: u32, d: u32) -> f32 {
  if (d >= HEAD_DIM) {
    return 0.0;
  }
  return q[head * HEAD_DIM + d] * Q_SCALE;
}

fn q4_at(first_head: u32, heads: u32, h: u32, d: u32) -> vec4f {
  let head = first_head + min(h, heads - 1u);
  return vec4f(q_at(head, d), q_at(head, d + 1u), q_at(head, d + 2u), q_at(head, d + 3u));
}

fn key_at(loaded: Eight, column: u32, is_newest: bool) -> Eight { return loaded; }
fn value_at(loaded: Eight, column: u32, is_newest: bool) -> Eight { return loaded; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(subgroup_id) subgroup: u32,
        @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_invocation_id) invocation: u32) {
  if (group.z >= single_rows()) { return; }
  attend(group.z, group.x, group.y, subgroup * subgroup_size + invocation, invocation);
}
