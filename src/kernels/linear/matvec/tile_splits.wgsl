// Reduces attention's splits of the keys (SplitPartials). For each head
//   x = sum of weighted_s * f_s / sum of sum_s * f_s,  f_s = exp2(highest_s - highest)
// over the splits that have keys, which depend on the position. Each workgroup makes the whole x, which costs less than
// a dispatch of its own if x is short. An invocation reduces every THREADS-th four columns. It loads all their parts at
// once, with the position, without a branch: the places of missing splits are loaded too, and dropped.
// Read next: tile_x_splits, tile_x_splits_f32, which stage it.
// Bindings of the entry: partials (vec4s of the layout of attention_output_partial), state. Consts: UNITS, THREADS,
// SPLITS, KEYS_PER_SPLIT, CTX_LEN, WINDOW, N_HEADS, HEAD_DIM (a multiple of 4).
//!import attention/attention_decode_range

const kXQuads = 8u * UNITS;
const QUADS_EACH = (kXQuads + THREADS - 1u) / THREADS;
const kPairs = SPLITS * kXQuads;  // the first vec4 of (highest, sum) pairs

struct XShare {
  weighted: array<vec4<f32>, QUADS_EACH * SPLITS>,
  pairs: array<vec4<f32>, QUADS_EACH * SPLITS>,  // each beside a neighbour
  keys: Keys,
}

fn pair_index(quad: u32, split: u32) -> u32 { return split * N_HEADS + quad / (HEAD_DIM / 4u); }

fn load_share(local: u32) -> XShare {
  var share: XShare;
  for (var e = 0u; e < QUADS_EACH; e++) {
    let quad = min(local + THREADS * e, kXQuads - 1u);
    for (var s = 0u; s < SPLITS; s++) {
      share.weighted[e * SPLITS + s] = partials[s * kXQuads + quad];
      share.pairs[e * SPLITS + s] = partials[kPairs + pair_index(quad, s) / 2u];
    }
  }
  share.keys = keys_of_row(0u);
  return share;
}

fn used_splits(keys: Keys) -> u32 { return (keys.end - keys.begin - 1u) / keys_per_split(keys) + 1u; }

// Four columns, the invocation's e-th.
fn reduced_quad(share: XShare, e: u32, quad: u32, used: u32) -> vec4<f32> {
  var pairs: array<vec2<f32>, SPLITS>;
  for (var s = 0u; s < SPLITS; s++) {
    let both = share.pairs[e * SPLITS + s];
    pairs[s] = select(both.xy, both.zw, pair_index(quad, s) % 2u == 1u);
  }
  var highest = pairs[0].x;  // the first split always has keys
  for (var s = 1u; s < SPLITS; s++) { highest = max(highest, select(highest, pairs[s].x, s < used)); }
  var sum = 0.0;
  var weighted = vec4<f32>(0.0);
  for (var s = 0u; s < SPLITS; s++) {
    let factor = exp2(pairs[s].x - highest);
    sum += select(0.0, factor * pairs[s].y, s < used);
    weighted += select(vec4<f32>(0.0), factor * share.weighted[e * SPLITS + s], s < used);
  }
  return weighted / sum;
}
