// x in workgroup memory, a chunk of CHUNK units of all rows at a time. `shared_words` also carries the partial
// sums when x is done with, so that all fits. Twin: skinny_x_direct.
// Consts: UNITS, THREADS, BATCH, CHUNK (units), PADDING (0 or 1: where neighbouring invocations read two units at once,
// these shall not lie in the same banks), SHARED_VEC4S.

const UNIT_STRIDE = BATCH * X_VEC4S + PADDING;
const CODES = BATCH * CHUNK * X_LOADS;
const CODES_EACH = (CODES + THREADS - 1u) / THREADS;
const FACTORS = BATCH * CHUNK;
const FACTORS_EACH = (FACTORS + THREADS - 1u) / THREADS;

var<workgroup> shared_words: array<vec4<u32>, SHARED_VEC4S>;

fn x_part(row: u32, c: u32, i: u32) -> vec4<u32> { return shared_words[c * UNIT_STRIDE + row * X_VEC4S + i]; }

// An invocation's part of a chunk. Rows and units past the end repeat the last.
struct XShare {
  codes: array<vec4<u32>, CODES_EACH>,
  factors: array<vec4<u32>, FACTORS_EACH>,
}

fn load_share(local: u32, first: u32, rows: u32) -> XShare {
  var share: XShare;
  for (var i = 0u; i < CODES_EACH; i++) {
    let at = local + THREADS * i;
    share.codes[i] = load_x(min(at / (CHUNK * X_LOADS), rows - 1u),
                            min(X_LOADS * first + at % (CHUNK * X_LOADS), X_LOADS * UNITS - 1u));
  }
  if (X_VEC4S > X_LOADS) {
    for (var i = 0u; i < FACTORS_EACH; i++) {
      let at = local + THREADS * i;
      share.factors[i] = load_factors(min(at / CHUNK, rows - 1u), min(first + at % CHUNK, UNITS - 1u));
    }
  }
  return share;
}

fn stage_share(local: u32, share: XShare) {
  for (var i = 0u; i < CODES_EACH; i++) {
    let at = local + THREADS * i;
    let row = at / (CHUNK * X_LOADS);
    let part = at % (CHUNK * X_LOADS);
    if (at < CODES) {
      shared_words[part / X_LOADS * UNIT_STRIDE + row * X_VEC4S + part % X_LOADS] = share.codes[i];
    }
  }
  if (X_VEC4S > X_LOADS) {
    for (var i = 0u; i < FACTORS_EACH; i++) {
      let at = local + THREADS * i;
      if (at < FACTORS) { shared_words[at % CHUNK * UNIT_STRIDE + at / CHUNK * X_VEC4S + X_LOADS] = share.factors[i]; }
    }
  }
}
