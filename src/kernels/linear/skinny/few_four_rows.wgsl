// Four weight rows an invocation of linear/skinny/few_outputs, for products that wait for reads of x from workgroup
// memory: two pairs, JOINED outputs apart. The sums of a row of x are one vector; BATCH is 8. Twin: few_two_rows.
//!import linear/skinny/skinny_join

struct WeightRows {
  own: Fetched,
  other: Fetched,
  next: Fetched,
  next_other: Fetched,
}
struct RowSums {
//!repeat i = 0 to 7
  r$(i): vec4<f32>,
//!end
}
struct Units {
  own: Unit,
  other: Unit,
  next: Unit,
  next_other: Unit,
}

fn fetch_rows(row: u32, other_row: u32, u: u32) -> WeightRows {
  return WeightRows(fetch_at(row, u), fetch_at(other_row, u), fetch_at(min(row + JOINED, WEIGHT_ROWS - 1u), u),
                    fetch_at(min(other_row + JOINED, WEIGHT_ROWS - 1u), u));
}

// Row `row` of x times unit c.
fn times_x(w: Units, row: u32, c: u32) -> vec4<f32> {
  let v = unit_x(row, c);
  return vec4<f32>(multiply(w.own, v), multiply(w.other, v), multiply(w.next, v), multiply(w.next_other, v));
}

fn add_rows(sums: RowSums, fetched: WeightRows, c: u32, rows: u32) -> RowSums {
  let w = Units(unpack_unit(fetched.own), unpack_unit(fetched.other), unpack_unit(fetched.next), unpack_unit(fetched.next_other));
  var s = sums;
//!repeat i = 0 to 3
  s.r$(i) += times_x(w, $(i)u, c);
//!end
  if (rows > 4u) {
//!repeat i = 4 to 7
    s.r$(i) += times_x(w, $(i)u, c);
//!end
  }
  return s;
}

fn join_rows(sums: RowSums, group: u32, local: u32, rows: u32) {
  let a = transpose(mat4x4<f32>(sums.r0, sums.r1, sums.r2, sums.r3));
  let b = transpose(mat4x4<f32>(sums.r4, sums.r5, sums.r6, sums.r7));
  join(Four(a[0], a[1]), 0u, 0u, group, local, rows);
  join(Four(a[2], a[3]), 0u, JOINED, group, local, rows);
  join(Four(b[0], b[1]), 4u, 0u, group, local, rows);
  join(Four(b[2], b[3]), 4u, JOINED, group, local, rows);
}
