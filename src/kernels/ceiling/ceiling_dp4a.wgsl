// Eight independent chains of packed 8-bit products an invocation, 64 products a round, all in registers: each feeds
// its sum back as an operand, or the product would be the same in every round. Nothing shared; exact modulo 2^32.
@group(0) @binding(0) var<storage, read> seed: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<i32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let w = seed[0];
//!repeat chain = a, b, c, d, e, f, g, h; i = 0 to 7
  var $(chain) = i32(t) + $(i);
//!end
  for (var i = 0u; i < ROUNDS; i++) {
//!repeat turn = 0 to 7
//!repeat chain = a, b, c, d, e, f, g, h
    $(chain) += dot4I8Packed(bitcast<u32>($(chain)), w);
//!end
//!end
  }
  results[group.x * WORKGROUP + t] = a + b + c + d + e + f + g + h;
}
