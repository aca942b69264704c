// Twin of attention_span. A table in the place of sinks holds the bits of the first and the last key of each row.
fn first_key_of(run: Run, row: u32) -> u32 { return bitcast<u32>(sinks[2u * min(row, run.last_row)]); }

fn last_key_of(run: Run, row: u32) -> u32 {
  let last = position_of(run, run.last_row);
  return min(bitcast<u32>(sinks[2u * min(row, run.last_row) + 1u]), last);
}
