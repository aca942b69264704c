// Eight independent chains of packed 8-bit products an invocation, 64 of them a round, all in registers: each feeds its
// sum back as an operand, or the product would be the same in every round. Nothing shared; exact modulo 2^32.
@group(0) @binding(0) var<storage, read> seed: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<i32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let w = seed[0];
  var a = i32(t) + 0;
  var b = i32(t) + 1;
  var c = i32(t) + 2;
  var d = i32(t) + 3;
  var e = i32(t) + 4;
  var f = i32(t) + 5;
  var g = i32(t) + 6;
  var h = i32(t) + 7;
  for (var i = 0u; i < ROUNDS; i++) {
    a += dot4I8Packed(bitcast<u32>(a), w);
    b += dot4I8Packed(bitcast<u32>(b), w);
    c += dot4I8Packed(bitcast<u32>(c), w);
    d += dot4I8Packed(bitcast<u32>(d), w);
    e += dot4I8Packed(bitcast<u32>(e), w);
    f += dot4I8Packed(bitcast<u32>(f), w);
    g += dot4I8Packed(bitcast<u32>(g), w);
    h += dot4I8Packed(bitcast<u32>(h), w);
    a += dot4I8Packed(bitcast<u32>(a), w);
    b += dot4I8Packed(bitcast<u32>(b), w);
    c += dot4I8Packed(bitcast<u32>(c), w);
    d += dot4I8Packed(bitcast<u32>(d), w);
    e += dot4I8Packed(bitcast<u32>(e), w);
    f += dot4I8Packed(bitcast<u32>(f), w);
    g += dot4I8Packed(bitcast<u32>(g), w);
    h += dot4I8Packed(bitcast<u32>(h), w);
    a += dot4I8Packed(bitcast<u32>(a), w);
    b += dot4I8Packed(bitcast<u32>(b), w);
    c += dot4I8Packed(bitcast<u32>(c), w);
    d += dot4I8Packed(bitcast<u32>(d), w);
    e += dot4I8Packed(bitcast<u32>(e), w);
    f += dot4I8Packed(bitcast<u32>(f), w);
    g += dot4I8Packed(bitcast<u32>(g), w);
    h += dot4I8Packed(bitcast<u32>(h), w);
    a += dot4I8Packed(bitcast<u32>(a), w);
    b += dot4I8Packed(bitcast<u32>(b), w);
    c += dot4I8Packed(bitcast<u32>(c), w);
    d += dot4I8Packed(bitcast<u32>(d), w);
    e += dot4I8Packed(bitcast<u32>(e), w);
    f += dot4I8Packed(bitcast<u32>(f), w);
    g += dot4I8Packed(bitcast<u32>(g), w);
    h += dot4I8Packed(bitcast<u32>(h), w);
    a += dot4I8Packed(bitcast<u32>(a), w);
    b += dot4I8Packed(bitcast<u32>(b), w);
    c += dot4I8Packed(bitcast<u32>(c), w);
    d += dot4I8Packed(bitcast<u32>(d), w);
    e += dot4I8Packed(bitcast<u32>(e), w);
    f += dot4I8Packed(bitcast<u32>(f), w);
    g += dot4I8Packed(bitcast<u32>(g), w);
    h += dot4I8Packed(bitcast<u32>(h), w);
    a += dot4I8Packed(bitcast<u32>(a), w);
    b += dot4I8Packed(bitcast<u32>(b), w);
    c += dot4I8Packed(bitcast<u32>(c), w);
    d += dot4I8Packed(bitcast<u32>(d), w);
    e += dot4I8Packed(bitcast<u32>(e), w);
    f += dot4I8Packed(bitcast<u32>(f), w);
    g += dot4I8Packed(bitcast<u32>(g), w);
    h += dot4I8Packed(bitcast<u32>(h), w);
    a += dot4I8Packed(bitcast<u32>(a), w);
    b += dot4I8Packed(bitcast<u32>(b), w);
    c += dot4I8Packed(bitcast<u32>(c), w);
    d += dot4I8Packed(bitcast<u32>(d), w);
    e += dot4I8Packed(bitcast<u32>(e), w);
    f += dot4I8Packed(bitcast<u32>(f), w);
    g += dot4I8Packed(bitcast<u32>(g), w);
    h += dot4I8Packed(bitcast<u32>(h), w);
    a += dot4I8Packed(bitcast<u32>(a), w);
    b += dot4I8Packed(bitcast<u32>(b), w);
    c += dot4I8Packed(bitcast<u32>(c), w);
    d += dot4I8Packed(bitcast<u32>(d), w);
    e += dot4I8Packed(bitcast<u32>(e), w);
    f += dot4I8Packed(bitcast<u32>(f), w);
    g += dot4I8Packed(bitcast<u32>(g), w);
    h += dot4I8Packed(bitcast<u32>(h), w);
  }
  results[group.x * WORKGROUP + t] = a + b + c + d + e + f + g + h;
}
