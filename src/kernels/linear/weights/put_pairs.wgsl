// Two pairs of f16 into workgroup memory, one behind the other: 8 bytes at a time, which meets in banks half as often as 4.
// H200, prompts of 512 and 4,096 tokens: 8B 16,520 to 17,030 and 16,480 to 16,815 tok/s. matmul_narrow has its own (narrow_tiles).
// Workgroup: w_tile, array<vec2<u32>>; `at` counts numbers.
fn put_pairs(at: u32, a: vec2<f16>, b: vec2<f16>) { w_tile[at / 4u] = vec2<u32>(bitcast<u32>(a), bitcast<u32>(b)); }
