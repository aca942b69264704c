// y = x W^T for 16 to 64 rows of x on the matrix units: f16 inputs, f32 sums (fragments of 16 x 16 x 16).
// Map: a workgroup of SUBGROUPS subgroups makes all rows of x (TILES times 16) by SUBGROUPS * ROWS weight rows, each
// subgroup its own ROWS, 32 or 64, in fragments whose rows are weight rows. Grid: x over weight rows, y over splits of
// the columns. A step is 128 columns: an invocation holds unit t / 8 of weight rows t % 8, t % 8 + 8, ... (t: its place
// in the subgroup) in registers. The step has four tiles of 32 columns: eighth e of each of the four units (columns 8e
// to 8e + 7). 16 weight rows of a tile at a time are unpacked and multiplied.
// AHEAD: the loads of the next step's units begin after the first tile, early enough to be there in time. It takes a
// branch, since NVIDIA's compiler otherwise moves loads to their use, and registers for both. They do not begin sooner:
// a wait for a load of x is a wait for all loads under way.
// Shared: w_tile, two buffers of 16 x 32 weights for each subgroup: one is multiplied while the other is filled; at the
// end it passes fragments to invocations that finish them one by one. x_tile, the tile's columns of x, whose fragments
// are in registers while the weight rows pass.
// Barriers: one after each 16 weight rows, after which one buffer is complete and the other free. x_tile is filled
// while the last 16 weight rows of the tile before are multiplied: its fragments were read before the first barrier of
// that tile.
// SPLIT: unfinished sums go to y, [split][row of x][weight row], which has room for all splits; linear_sum adds them
// up. Otherwise bias and residual are added here.
// Error: x and weights rounded to f16, sums in f32, which the units round towards zero: linear.h.
// Read next: linear/weights/stage_tile_q4, common/forms.h (the order of x's numbers), linear/linear_sum.
//!import linear/narrow/narrow_tiles
//!note 16 weight rows, w0 and w1, times all fragments of x.
//!block multiply r
s$(r)0 = subgroupMatrixMultiplyAccumulate(w1, x01, subgroupMatrixMultiplyAccumulate(w0, x00, s$(r)0));
//!repeat t = 1 to 3
if (TILES > $(t)u) { s$(r)$(t) = subgroupMatrixMultiplyAccumulate(w1, x$(t)1, subgroupMatrixMultiplyAccumulate(w0, x$(t)0, s$(r)$(t))); }
//!end
//!end
//!note Eighth e of the four units of a step. It stages eighth `then`: x of step `at`, weights of `from`.
//!block eighth e at then from
// Columns $(8 * e) to $(8 * e + 7) of each unit.
x00 = load_x(0u);
x01 = load_x(16u);
//!repeat t = 1 to 3
if (TILES > $(t)u) {
  x$(t)0 = load_x($(t)u * kBuffer);
  x$(t)1 = load_x($(t)u * kBuffer + 16u);
}
//!end
share = fetch_x(local, $(at), $(then)u, end);
{
  let w0 = load_w(own);
  let w1 = load_w(own + 16u);
  stage_rows(units[2], units[3], $(e)u, to1);
  //!use multiply 0
}
workgroupBarrier();
{
  let w0 = load_w(own + kBuffer);
  let w1 = load_w(own + kBuffer + 16u);
  if (ROWS == 32u) {
    stage_rows($(from)[0], $(from)[1], $(then)u, to0);
    stage_x(local, share);
  } else {
    stage_rows(units[4], units[5], $(e)u, to0);
  }
  //!use multiply 1
}
workgroupBarrier();
if (ROWS > 32u) {
  {
    let w0 = load_w(own);
    let w1 = load_w(own + 16u);
    stage_rows(units[6], units[7], $(e)u, to1);
    //!use multiply 2
  }
  workgroupBarrier();
  {
    let w0 = load_w(own + kBuffer);
    let w1 = load_w(own + kBuffer + 16u);
    stage_rows($(from)[0], $(from)[1], $(then)u, to0);
    stage_x(local, share);
    //!use multiply 3
  }
  workgroupBarrier();
}
//!end
//!note All sums of 16 rows of x.
//!block put_tile t
put_sum(s0$(t), place, is_inside, 0u, $(16 * t)u);
put_sum(s1$(t), place, is_inside, 16u, $(16 * t)u);
if (ROWS > 32u) {
  put_sum(s2$(t), place, is_inside, 32u, $(16 * t)u);
  put_sum(s3$(t), place, is_inside, 48u, $(16 * t)u);
}
//!end

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

//!repeat r = 0 to 3
//!repeat t = 0 to 3
  var s$(r)$(t): Sum;
//!end
//!end
  // Fragments of x: tile of 16 rows, half of the 32 columns.
//!repeat t = 0 to 3
  var x$(t)0: Right;
  var x$(t)1: Right;
//!end

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
    // after the last step, that step is read again
    let then = select(min(u + 4u, end - 4u), u + 4u, HAS_TAIL);

    //!use eighth 0 u 1 units

    if (!AHEAD || u + 4u < end) {
      for (var i = 0u; i < kUnits; i++) {
        next[i] = fetch_w(first_row, own_row, i, then, own_unit);
      }
    }

    //!use eighth 1 u 2 units

    //!use eighth 2 u 3 units

    //!use eighth 3 then 0 next
    units = next;
  }

  let place = Place(subgroup, subgroup_invocation, first_row, group.y * params.y_split + params.y_first);
  let is_inside = kRowsX <= state.rows && row0 + SUBGROUPS * ROWS <= params.rows;
  //!use put_tile 0
//!repeat t = 1 to 3
  if (TILES > $(t)u) {
    //!use put_tile $(t)
  }
//!end
}
