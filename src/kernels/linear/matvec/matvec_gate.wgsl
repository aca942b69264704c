// Finishes the two sums of a gated product. Consts of the entry: HAS_BIAS, ACTIVATE (an Activate of linear.h; 0: not
// gated). Bindings: params, bias, y. Read next: common/activate.
//!import common/activate

// One output of a gated product: `row` is the gate's row, its up row lies params.gate_rows further on.
fn finish_gate(row: u32, gate_sum: f32, up_sum: f32, at: u32) {
  var gate = gate_sum;
  var up = up_sum;
  if (HAS_BIAS) {
    gate += bias[row];
    up += bias[params.gate_rows + row];
  }
  y[at] = activate(gate) * up;
}
