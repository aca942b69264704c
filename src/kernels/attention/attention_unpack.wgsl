// Copies the keys and values that a run of rows sees, from a cache in q8_0 to one in f16 with the same blocks and
// positions, for kernels of attention that do not read bytes. x of the grid shares the run's keys, y is the kv head, z
// the run.
// One invocation: eight dimensions of a key and of its value, then of one further on.
// Keys begin at a whole kStep, since tiles do and read what they mask. A ring may have fewer keys than that: then two
// invocations copy the same place, alike.
// Error: rounded to f16.
//!import attention/attention_one_run
//!import attention/attention_cache_q8_0
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> k_cache: array<vec2u>;
@group(0) @binding(2) var<storage, read> v_cache: array<vec2u>;
@group(0) @binding(3) var<storage, read_write> k_f16: array<vec4u>;
@group(0) @binding(4) var<storage, read_write> v_f16: array<vec4u>;

const kStep = 128u;  // the most keys of a tile (variants.cpp)

fn f16_of(e: Eight) -> vec4u {
  let low = low4(e);
  let high = high4(e);
  return vec4u(pack2x16float(low.xy), pack2x16float(low.zw), pack2x16float(high.xy), pack2x16float(high.zw));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let run = run_of(group.z);
  if (run.first_row > run.last_row) {
    return;
  }
  let end = min(run.position + (run.last_row - run.first_row) + 1u, CTX_LEN);  // of a row that is nowhere: 0
  let first = min(run.position, CTX_LEN - 1u);
  let begin = (first - min(first, WINDOW - 1u)) / kStep * kStep;
  for (var i = begin * D8 + group.x * WORKGROUP + thread; i < end * D8; i += groups.x * WORKGROUP) {
    let at = cache_row(run.first_row, group.y, i / D8) * D8 + i % D8;
    k_f16[at] = f16_of(eight_from(at, k_cache[bytes_place(at)], k_cache[scales_place(at)]));
    v_f16[at] = f16_of(eight_from(at, v_cache[bytes_place(at)], v_cache[scales_place(at)]));
  }
}
