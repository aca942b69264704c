// y = x W^T for 16 to 64 rows of x on the matrix units: f16 inputs, f32 sums (fragments of 16 x 16 x 16).
// Map: a workgroup of SUBGROUPS subgroups makes all rows of x (TILES times 16) by SUBGROUPS * ROWS weight rows, each subgroup
// its own ROWS of them, 32 or 64, in fragments whose rows are weight rows. Grid: x over weight rows, y over splits of the columns.
// A step is 128 columns: an invocation holds unit t / 8 of weight rows t % 8, t % 8 + 8, ... (t: its place in the subgroup) in
// registers. The step has four tiles of 32 columns: eighth e of each of the four units (columns 8e to 8e + 7). Of a tile, 16
// weight rows at a time are unpacked and multiplied.
// AHEAD: the next step's units are asked for behind the first tile, early enough to be there in time. It takes a branch, since
// NVIDIA's compiler otherwise moves loads to where they are used, and registers for both. Not sooner: whoever waits for a load
// of x waits for all loads under way.
// Shared: w_tile, two buffers of 16 x 32 weights for each subgroup: one is multiplied while the other is filled; at the end it
// passes fragments to invocations that finish them one by one. x_tile, the tile's columns of x, whose fragments are in registers
// while the weight rows pass.
// Barriers: one after each 16 weight rows, behind which one buffer is complete and the other free. x_tile is filled
// while the last 16 weight rows of the tile before are multiplied: its fragments were read before the first's barrier.
// SPLIT: sums go to y as they are, [split][row of x][weight row], with room for all of them; linear_sum adds them up.
// Otherwise bias and residual are added here.
// Error: x and weights rounded to f16, sums in f32, which the units round towards zero: linear.h.
// Read next: linear/weights/stage_tile_q4, common/forms.h (the order of x's numbers), linear/linear_sum.
//!import linear/narrow/narrow_tiles

@compute @workgroup_size(kWorkgroup)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) subgroup_invocation: u32) {
  let row0 = group.x * SUBGROUPS * ROWS;
  let first_row = row0 + subgroup * ROWS;
  let begin = group.y * params.split_units;
  let end = min(begin + params.split_units, params.units);
  let own_row = subgroup_invocation % 8u;
  let own_unit = subgroup_invocation / 8u;
  let own = subgroup * 2u * kBuffer;
  let to0 = own + own_row * kStride + own_unit * kUnitStep;
  let to1 = to0 + kBuffer;

  var s00: Sum;
  var s01: Sum;
  var s02: Sum;
  var s03: Sum;
  var s10: Sum;
  var s11: Sum;
  var s12: Sum;
  var s13: Sum;
  var s20: Sum;
  var s21: Sum;
  var s22: Sum;
  var s23: Sum;
  var s30: Sum;
  var s31: Sum;
  var s32: Sum;
  var s33: Sum;
  // Fragments of x: tile of 16 rows, half of the 32 columns.
  var x00: Right;
  var x01: Right;
  var x10: Right;
  var x11: Right;
  var x20: Right;
  var x21: Right;
  var x30: Right;
  var x31: Right;

  var units: array<StageUnit, 8>;
  var next: array<StageUnit, 8>;
  for (var i = 0u; i < kUnits; i++) {
    units[i] = fetch_w(first_row, own_row, i, begin, own_unit);
  }
  var share = fetch_x(local, begin, 0u, end);
  stage_rows(units[0], units[1], 0u, to0);
  stage_x(local, share);
  workgroupBarrier();
  for (var u = begin; u < end; u += 4u) {
    let then = select(min(u + 4u, end - 4u), u + 4u, HAS_TAIL);  // behind the last step that one is read again

    // Columns 0 to 7 of each unit.
    x00 = load_x(0u);
    x01 = load_x(16u);
    if (TILES > 1u) {
      x10 = load_x(1u * kBuffer);
      x11 = load_x(1u * kBuffer + 16u);
    }
    if (TILES > 2u) {
      x20 = load_x(2u * kBuffer);
      x21 = load_x(2u * kBuffer + 16u);
    }
    if (TILES > 3u) {
      x30 = load_x(3u * kBuffer);
      x31 = load_x(3u * kBuffer + 16u);
    }
    share = fetch_x(local, u, 1u, end);
    {
      let w0 = load_w(own);
      let w1 = load_w(own + 16u);
      stage_rows(units[2], units[3], 0u, to1);
      s00 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s00));
      if (TILES > 1u) { s01 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s01)); }
      if (TILES > 2u) { s02 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s02)); }
      if (TILES > 3u) { s03 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s03)); }
    }
    workgroupBarrier();
    {
      let w0 = load_w(own + kBuffer);
      let w1 = load_w(own + kBuffer + 16u);
      if (ROWS == 32u) {
        stage_rows(units[0], units[1], 1u, to0);
        stage_x(local, share);
      } else {
        stage_rows(units[4], units[5], 0u, to0);
      }
      s10 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s10));
      if (TILES > 1u) { s11 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s11)); }
      if (TILES > 2u) { s12 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s12)); }
      if (TILES > 3u) { s13 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s13)); }
    }
    workgroupBarrier();
    if (ROWS > 32u) {
      {
        let w0 = load_w(own);
        let w1 = load_w(own + 16u);
        stage_rows(units[6], units[7], 0u, to1);
        s20 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s20));
        if (TILES > 1u) { s21 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s21)); }
        if (TILES > 2u) { s22 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s22)); }
        if (TILES > 3u) { s23 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s23)); }
      }
      workgroupBarrier();
      {
        let w0 = load_w(own + kBuffer);
        let w1 = load_w(own + kBuffer + 16u);
        stage_rows(units[0], units[1], 1u, to0);
        stage_x(local, share);
        s30 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s30));
        if (TILES > 1u) { s31 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s31)); }
        if (TILES > 2u) { s32 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s32)); }
        if (TILES > 3u) { s33 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s33)); }
      }
      workgroupBarrier();
    }

    if (!AHEAD || u + 4u < end) {
      for (var i = 0u; i < kUnits; i++) {
        next[i] = fetch_w(first_row, own_row, i, then, own_unit);
      }
    }

    // Columns 8 to 15 of each unit.
    x00 = load_x(0u);
    x01 = load_x(16u);
    if (TILES > 1u) {
      x10 = load_x(1u * kBuffer);
      x11 = load_x(1u * kBuffer + 16u);
    }
    if (TILES > 2u) {
      x20 = load_x(2u * kBuffer);
      x21 = load_x(2u * kBuffer + 16u);
    }
    if (TILES > 3u) {
      x30 = load_x(3u * kBuffer);
      x31 = load_x(3u * kBuffer + 16u);
    }
    share = fetch_x(local, u, 2u, end);
    {
      let w0 = load_w(own);
      let w1 = load_w(own + 16u);
      stage_rows(units[2], units[3], 1u, to1);
      s00 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s00));
      if (TILES > 1u) { s01 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s01)); }
      if (TILES > 2u) { s02 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s02)); }
      if (TILES > 3u) { s03 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s03)); }
    }
    workgroupBarrier();
    {
      let w0 = load_w(own + kBuffer);
      let w1 = load_w(own + kBuffer + 16u);
      if (ROWS == 32u) {
        stage_rows(units[0], units[1], 2u, to0);
        stage_x(local, share);
      } else {
        stage_rows(units[4], units[5], 1u, to0);
      }
      s10 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s10));
      if (TILES > 1u) { s11 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s11)); }
      if (TILES > 2u) { s12 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s12)); }
      if (TILES > 3u) { s13 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s13)); }
    }
    workgroupBarrier();
    if (ROWS > 32u) {
      {
        let w0 = load_w(own);
        let w1 = load_w(own + 16u);
        stage_rows(units[6], units[7], 1u, to1);
        s20 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s20));
        if (TILES > 1u) { s21 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s21)); }
        if (TILES > 2u) { s22 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s22)); }
        if (TILES > 3u) { s23 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s23)); }
      }
      workgroupBarrier();
      {
        let w0 = load_w(own + kBuffer);
        let w1 = load_w(own + kBuffer + 16u);
        stage_rows(units[0], units[1], 2u, to0);
        stage_x(local, share);
        s30 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s30));
        if (TILES > 1u) { s31 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s31)); }
        if (TILES > 2u) { s32 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s32)); }
        if (TILES > 3u) { s33 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s33)); }
      }
      workgroupBarrier();
    }

    // Columns 16 to 23 of each unit.
    x00 = load_x(0u);
    x01 = load_x(16u);
    if (TILES > 1u) {
      x10 = load_x(1u * kBuffer);
      x11 = load_x(1u * kBuffer + 16u);
    }
    if (TILES > 2u) {
      x20 = load_x(2u * kBuffer);
      x21 = load_x(2u * kBuffer + 16u);
    }
    if (TILES > 3u) {
      x30 = load_x(3u * kBuffer);
      x31 = load_x(3u * kBuffer + 16u);
    }
    share = fetch_x(local, u, 3u, end);
    {
      let w0 = load_w(own);
      let w1 = load_w(own + 16u);
      stage_rows(units[2], units[3], 2u, to1);
      s00 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s00));
      if (TILES > 1u) { s01 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s01)); }
      if (TILES > 2u) { s02 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s02)); }
      if (TILES > 3u) { s03 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s03)); }
    }
    workgroupBarrier();
    {
      let w0 = load_w(own + kBuffer);
      let w1 = load_w(own + kBuffer + 16u);
      if (ROWS == 32u) {
        stage_rows(units[0], units[1], 3u, to0);
        stage_x(local, share);
      } else {
        stage_rows(units[4], units[5], 2u, to0);
      }
      s10 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s10));
      if (TILES > 1u) { s11 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s11)); }
      if (TILES > 2u) { s12 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s12)); }
      if (TILES > 3u) { s13 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s13)); }
    }
    workgroupBarrier();
    if (ROWS > 32u) {
      {
        let w0 = load_w(own);
        let w1 = load_w(own + 16u);
        stage_rows(units[6], units[7], 2u, to1);
        s20 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s20));
        if (TILES > 1u) { s21 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s21)); }
        if (TILES > 2u) { s22 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s22)); }
        if (TILES > 3u) { s23 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s23)); }
      }
      workgroupBarrier();
      {
        let w0 = load_w(own + kBuffer);
        let w1 = load_w(own + kBuffer + 16u);
        stage_rows(units[0], units[1], 3u, to0);
        stage_x(local, share);
        s30 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s30));
        if (TILES > 1u) { s31 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s31)); }
        if (TILES > 2u) { s32 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s32)); }
        if (TILES > 3u) { s33 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s33)); }
      }
      workgroupBarrier();
    }

    // Columns 24 to 31 of each unit.
    x00 = load_x(0u);
    x01 = load_x(16u);
    if (TILES > 1u) {
      x10 = load_x(1u * kBuffer);
      x11 = load_x(1u * kBuffer + 16u);
    }
    if (TILES > 2u) {
      x20 = load_x(2u * kBuffer);
      x21 = load_x(2u * kBuffer + 16u);
    }
    if (TILES > 3u) {
      x30 = load_x(3u * kBuffer);
      x31 = load_x(3u * kBuffer + 16u);
    }
    share = fetch_x(local, then, 0u, end);
    {
      let w0 = load_w(own);
      let w1 = load_w(own + 16u);
      stage_rows(units[2], units[3], 3u, to1);
      s00 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s00));
      if (TILES > 1u) { s01 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s01)); }
      if (TILES > 2u) { s02 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s02)); }
      if (TILES > 3u) { s03 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s03)); }
    }
    workgroupBarrier();
    {
      let w0 = load_w(own + kBuffer);
      let w1 = load_w(own + kBuffer + 16u);
      if (ROWS == 32u) {
        stage_rows(next[0], next[1], 0u, to0);
        stage_x(local, share);
      } else {
        stage_rows(units[4], units[5], 3u, to0);
      }
      s10 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s10));
      if (TILES > 1u) { s11 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s11)); }
      if (TILES > 2u) { s12 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s12)); }
      if (TILES > 3u) { s13 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s13)); }
    }
    workgroupBarrier();
    if (ROWS > 32u) {
      {
        let w0 = load_w(own);
        let w1 = load_w(own + 16u);
        stage_rows(units[6], units[7], 3u, to1);
        s20 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s20));
        if (TILES > 1u) { s21 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s21)); }
        if (TILES > 2u) { s22 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s22)); }
        if (TILES > 3u) { s23 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s23)); }
      }
      workgroupBarrier();
      {
        let w0 = load_w(own + kBuffer);
        let w1 = load_w(own + kBuffer + 16u);
        stage_rows(next[0], next[1], 0u, to0);
        stage_x(local, share);
        s30 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s30));
        if (TILES > 1u) { s31 = subgroupMatrixMultiplyAccumulate(w1, x11, subgroupMatrixMultiplyAccumulate(w0, x10, s31)); }
        if (TILES > 2u) { s32 = subgroupMatrixMultiplyAccumulate(w1, x21, subgroupMatrixMultiplyAccumulate(w0, x20, s32)); }
        if (TILES > 3u) { s33 = subgroupMatrixMultiplyAccumulate(w1, x31, subgroupMatrixMultiplyAccumulate(w0, x30, s33)); }
      }
      workgroupBarrier();
    }
    units = next;
  }

  let place = Place(subgroup, subgroup_invocation, first_row, group.y * params.y_split + params.y_first);
  let is_inside = kRowsX <= state.rows && row0 + SUBGROUPS * ROWS <= params.rows;
  put_sum(s00, place, is_inside, 0u, 0u);
  put_sum(s10, place, is_inside, 16u, 0u);
  if (ROWS > 32u) {
    put_sum(s20, place, is_inside, 32u, 0u);
    put_sum(s30, place, is_inside, 48u, 0u);
  }
  if (TILES > 1u) {
    put_sum(s01, place, is_inside, 0u, 16u);
    put_sum(s11, place, is_inside, 16u, 16u);
    if (ROWS > 32u) {
      put_sum(s21, place, is_inside, 32u, 16u);
      put_sum(s31, place, is_inside, 48u, 16u);
    }
  }
  if (TILES > 2u) {
    put_sum(s02, place, is_inside, 0u, 32u);
    put_sum(s12, place, is_inside, 16u, 32u);
    if (ROWS > 32u) {
      put_sum(s22, place, is_inside, 32u, 32u);
      put_sum(s32, place, is_inside, 48u, 32u);
    }
  }
  if (TILES > 3u) {
    put_sum(s03, place, is_inside, 0u, 48u);
    put_sum(s13, place, is_inside, 16u, 48u);
    if (ROWS > 32u) {
      put_sum(s23, place, is_inside, 32u, 48u);
      put_sum(s33, place, is_inside, 48u, 48u);
    }
  }
}
