// The input of a product in workgroup memory, as 8-bit blocks from words that other workgroups send. An invocation
// brings a block. norm_factor() is the factor of a product's sums if it reads a deferred norm.
// Consts: THREADS, SUBGROUP (invocations that surely share a subgroup), HIDDEN, MOST_BLOCKS, NORM_EPS.
// Barriers: before, since the words may be this workgroup's own; after, when x is complete.
//!import persistent/persistent_exchange

const kHiddenBlocks = HIDDEN / 16u;
const kNormParts = THREADS / SUBGROUP;

var<workgroup> x_codes: array<vec4<u32>, MOST_BLOCKS>;
var<workgroup> x_factors: array<vec2<f32>, MOST_BLOCKS>;  // (d, d * sum)
var<workgroup> norm_parts: array<f32, kNormParts>;

fn put_block(at: u32, codes: vec4<u32>, d: f32) {
  const kOnes = 0x01010101u;
  let sum = (dot4I8Packed(codes.x, kOnes) + dot4I8Packed(codes.y, kOnes)) +
            (dot4I8Packed(codes.z, kOnes) + dot4I8Packed(codes.w, kOnes));
  x_codes[at] = codes;
  x_factors[at] = vec2<f32>(d, d * f32(sum));
}

fn put_norm_part(local: u32, squares: f32) {
  var sum = squares;
  for (var distance = 1u; distance < SUBGROUP; distance <<= 1u) { sum += subgroupShuffleXor(sum, distance); }
  if (local % SUBGROUP == 0u) { norm_parts[local / SUBGROUP] = sum; }
}

fn norm_factor() -> f32 {
  var sum = 0.0;
  for (var i = 0u; i < kNormParts; i++) { sum += norm_parts[i]; }
  return inverseSqrt(sum / f32(HIDDEN) + NORM_EPS);
}

fn receive_x(local: u32, at: u32, blocks: u32, has_squares: bool) {
  workgroupBarrier();
  var squares = 0.0;
  for (var block = local; block < blocks; block += THREADS * one()) {
    let received = receive_block(at + block, blocks, has_squares);
    put_block(block, received.codes, received.d);
    squares += received.squares;
  }
  if (has_squares) { put_norm_part(local, squares); }
  workgroupBarrier();
}
