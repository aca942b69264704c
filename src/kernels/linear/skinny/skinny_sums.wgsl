// The sums of one or two weight rows (PAIR) with up to BATCH rows of x that an invocation holds in registers, four rows
// of x a vector. Each unit of weights is unpacked once for all rows of x, each unit of x read once for both weight
// rows. Imports linear/skinny/unit (the arithmetic) and linear/skinny/x (the source of x). Consts: BATCH (2, 4, 8, 16),
// PAIR (1, 2).
//!import linear/skinny/unit
//!import linear/skinny/x

struct Four {
  own: vec4<f32>,
  other: vec4<f32>,
}
struct Sums {
  a: Four,
  b: Four,
  c: Four,
  d: Four,
}

// Rows first.. of x times unit c.
fn four_rows(sum: Four, w: Unit, other: Unit, first: u32, c: u32) -> Four {
  var s = sum;
  let x0 = unit_x(first, c);
  s.own.x += multiply(w, x0);
  if (PAIR == 2u) { s.other.x += multiply(other, x0); }
  let x1 = unit_x(first + 1u, c);
  s.own.y += multiply(w, x1);
  if (PAIR == 2u) { s.other.y += multiply(other, x1); }
  if (BATCH > 2u) {
    let x2 = unit_x(first + 2u, c);
    s.own.z += multiply(w, x2);
    if (PAIR == 2u) { s.other.z += multiply(other, x2); }
    let x3 = unit_x(first + 3u, c);
    s.own.w += multiply(w, x3);
    if (PAIR == 2u) { s.other.w += multiply(other, x3); }
  }
  return s;
}

// `rows`: of this step; vectors without any are left out.
fn add_unit(sums: Sums, fetched: Fetched, other_fetched: Fetched, c: u32, rows: u32) -> Sums {
  let w = unpack_unit(fetched);
  let other = unpack_unit(other_fetched);
  var s = sums;
  s.a = four_rows(s.a, w, other, 0u, c);
  if (BATCH > 4u && rows > 4u) { s.b = four_rows(s.b, w, other, 4u, c); }
  if (BATCH > 8u && rows > 8u) { s.c = four_rows(s.c, w, other, 8u, c); }
  if (BATCH > 8u && rows > 12u) { s.d = four_rows(s.d, w, other, 12u, c); }
  return s;
}
