// The fragments of weights/ and of this folder need these from the entries, besides bindings: the columns, and the
// place of a workgroup's outputs. Consts: COLUMNS and ROW_VEC4S (of plane 0) of a row, FIRST_ROW (of this piece in the
// matrix).

struct Params {
  units: u32,  // of 32 columns
  row_vec4s: u32,
  k: u32,
  first_row: u32,
}
const params = Params(COLUMNS / 32u, ROW_VEC4S, COLUMNS, FIRST_ROW);

// The first row of x of this workgroup; what else is called a row of x counts from it.
var<private> first_x_row: u32;
// The first number of y of this workgroup's split of the columns.
var<private> first_y: u32;
