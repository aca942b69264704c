// x in workgroup memory, CHUNK units of all rows at a time, read by whole subgroups at once. `shared_words` also carries the
// partial sums when x is done with. Twins: skinny_x_staged, skinny_x_direct.
// Consts: UNITS, THREADS, BATCH, CHUNK (units), SHARED_VEC4S.

const UNIT_STRIDE = BATCH * X_VEC4S;

var<workgroup> shared_words: array<vec4<u32>, SHARED_VEC4S>;

fn x_part(row: u32, c: u32, i: u32) -> vec4<u32> { return shared_words[c * UNIT_STRIDE + row * X_VEC4S + i]; }

const CODES = BATCH * CHUNK * X_LOADS;
const CODES_EACH = (CODES + THREADS - 1u) / THREADS;
const FACTORS = BATCH * CHUNK;
const FACTORS_EACH = (FACTORS + THREADS - 1u) / THREADS;

// What an invocation brings of a chunk.
struct XChunk {
  codes: array<vec4<u32>, CODES_EACH>,
  factors: array<vec4<u32>, FACTORS_EACH>,
}

// Units `first`.. of the row. All loads are under way before the first is waited for: rows and units past the end repeat
// the last.
fn load_chunk(local: u32, first: u32, rows: u32) -> XChunk {
  var chunk: XChunk;
  for (var i = 0u; i < CODES_EACH; i++) {
    let at = local + THREADS * i;
    chunk.codes[i] = load_x(min(at / (CHUNK * X_LOADS), rows - 1u),
                            min(X_LOADS * first + at % (CHUNK * X_LOADS), X_LOADS * UNITS - 1u));
  }
  if (X_VEC4S > X_LOADS) {
    for (var i = 0u; i < FACTORS_EACH; i++) {
      let at = local + THREADS * i;
      chunk.factors[i] = load_factors(min(at / CHUNK, rows - 1u), min(first + at % CHUNK, UNITS - 1u));
    }
  }
  return chunk;
}

fn put_chunk(local: u32, chunk: XChunk) {
  for (var i = 0u; i < CODES_EACH; i++) {
    let at = local + THREADS * i;
    let part = at % (CHUNK * X_LOADS);
    if (at < CODES) {
      shared_words[part / X_LOADS * UNIT_STRIDE + at / (CHUNK * X_LOADS) * X_VEC4S + part % X_LOADS] = chunk.codes[i];
    }
  }
  if (X_VEC4S > X_LOADS) {
    for (var i = 0u; i < FACTORS_EACH; i++) {
      let at = local + THREADS * i;
      if (at < FACTORS) { shared_words[at % CHUNK * UNIT_STRIDE + at / CHUNK * X_VEC4S + X_LOADS] = chunk.factors[i]; }
    }
  }
}
