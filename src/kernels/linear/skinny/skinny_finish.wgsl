// Finishes the sums of a few rows: bias, residual, or the gate. Bindings of the entry: bias, y. Consts: GATED,
// GROUP_ROWS (outputs of a workgroup), OUTPUTS (of a row in this dispatch), Y_FIRST, Y_STRIDE, HAS_BIAS, ACCUMULATE,
// HAS_Q8, BLOCK_VALUES (BATCH * GROUP_ROWS, or 1), ACTIVATE. Read next: linear/skinny/skinny_blocks.
//!import linear/linear_epilogue
//!import common/activate

// [row of x][output]
var<workgroup> block_values: array<f32, BLOCK_VALUES>;

// Output `i` of a workgroup, of row `row` of x.
fn finish_output(group: u32, i: u32, row: u32, sum: f32, up: f32, rows: u32) {
  let output = group * GROUP_ROWS + i;
  if (output >= OUTPUTS || row >= rows) { return; }
  let at = first_y + (first_x_row + row) * Y_STRIDE + Y_FIRST + output;
  if (!GATED) {
    finish(output, sum, at);
    return;
  }
  var both = vec2<f32>(sum, up);
  if (HAS_BIAS) { both += vec2<f32>(bias[output], bias[OUTPUTS + output]); }
  let value = activate(both.x) * both.y;
  y[at] = value;
  if (HAS_Q8) { block_values[row * GROUP_ROWS + i] = value; }
}
