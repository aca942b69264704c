// Where a unit of a row lies in a tile format (base/dtype.h): for planes of one entry a unit; of several, entry p is
// number plane_at(row, u, p, count).

fn plane_at(row: u32, u: u32, p: u32, count: u32) -> u32 {
  return (((row >> 5u) * params.units + u) * count + p) * 32u + (row & 31u);
}

fn unit_first16(u: u32) -> u32 { return 2u * u; }
fn unit_second16(u: u32) -> u32 { return 2u * u + 1u; }
