// One or two weight rows (PAIR) an invocation of linear/skinny/few_outputs; BATCH is at most 8. Twin: few_four_rows.
//!import linear/skinny/skinny_join

alias RowSums = Sums;
struct WeightRows {
  own: Fetched,
  other: Fetched,
}

fn fetch_rows(row: u32, other_row: u32, u: u32) -> WeightRows {
  var w: WeightRows;
  w.own = fetch_at(row, u);
  if (PAIR == 2u) { w.other = fetch_at(other_row, u); }
  return w;
}

fn add_rows(sums: Sums, w: WeightRows, c: u32, rows: u32) -> Sums { return add_unit(sums, w.own, w.other, c, rows); }

fn join_rows(sums: Sums, group: u32, local: u32, rows: u32) {
  join(sums.a, 0u, 0u, group, local, rows);
  if (BATCH > 4u) { join(sums.b, 4u, 0u, group, local, rows); }
}
