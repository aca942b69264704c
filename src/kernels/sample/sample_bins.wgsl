// A histogram of tokens in workgroup memory: how many fall into each bin, and the 64-bit sum of their weights; and
// the search for the bin in which a running sum reaches a target. Integer sums do not depend on the order of the
// atomics, so results never vary. Functions that say so hold barriers: call them in uniform control flow.
var<workgroup> bin_counts: array<atomic<u32>, kBins>;
var<workgroup> bin_lows: array<atomic<u32>, kBins>;
var<workgroup> bin_highs: array<atomic<u32>, kBins>;
var<workgroup> scan_lows: array<u32, WORKGROUP>;
var<workgroup> scan_highs: array<u32, WORKGROUP>;
var<workgroup> found: vec4u;

const kBinsEach = kBins / WORKGROUP;

// Barriers: the bins are free before and clear after.
fn clear_bins(t: u32) {
  workgroupBarrier();
  for (var bin = t; bin < kBins; bin += WORKGROUP) {
    atomicStore(&bin_counts[bin], 0u);
    atomicStore(&bin_lows[bin], 0u);
    atomicStore(&bin_highs[bin], 0u);
  }
  workgroupBarrier();
}

fn add_to_bin(bin: u32, count: u32, weight: vec2u) {
  atomicAdd(&bin_counts[bin], count);
  let before = atomicAdd(&bin_lows[bin], weight.x);
  let carry = select(0u, 1u, before + weight.x < before);
  if (weight.y + carry != 0u) {
    atomicAdd(&bin_highs[bin], weight.y + carry);
  }
}

fn bin_sum(bin: u32, by_count: bool) -> vec2u {
  if (by_count) {
    return vec2u(atomicLoad(&bin_counts[bin]), 0u);
  }
  return vec2u(atomicLoad(&bin_lows[bin]), atomicLoad(&bin_highs[bin]));
}

// Running sums over the bins, up to and including this invocation's share. Barriers: the bins are complete before;
// scan_* hold the running sums of all invocations after.
fn scan_bins(t: u32, by_count: bool) {
  workgroupBarrier();
  var sum = vec2u();
  for (var i = 0u; i < kBinsEach; i++) {
    sum = add_64(sum, bin_sum(t * kBinsEach + i, by_count));
  }
  scan_lows[t] = sum.x;
  scan_highs[t] = sum.y;
  workgroupBarrier();
  for (var step = 1u; step < WORKGROUP; step *= 2u) {
    if (t >= step) {
      sum = add_64(sum, vec2u(scan_lows[t - step], scan_highs[t - step]));
    }
    workgroupBarrier(); // all have read
    scan_lows[t] = sum.x;
    scan_highs[t] = sum.y;
    workgroupBarrier(); // all have written
  }
}

// After scan_bins().
fn bins_total() -> vec2u { return vec2u(scan_lows[WORKGROUP - 1u], scan_highs[WORKGROUP - 1u]); }

// After scan_bins(): the first bin at which the running sum reaches `wanted` (or all there is, if that is less).
// Returns (bin, tokens in it, running sum before it). Barriers around `found`.
fn find_bin(t: u32, by_count: bool, wanted: vec2u) -> vec4u {
  if (t == 0u) {
    found = vec4u();
  }
  workgroupBarrier();
  let total = bins_total();
  let goal = select(wanted, total, less_64(total, wanted));
  var before = vec2u();
  if (t > 0u) {
    before = vec2u(scan_lows[t - 1u], scan_highs[t - 1u]);
  }
  let after = vec2u(scan_lows[t], scan_highs[t]);
  if (less_64(before, goal) && !less_64(after, goal)) { // one invocation, as goal > 0
    for (var i = 0u; i < kBinsEach; i++) {
      let bin = t * kBinsEach + i;
      let next = add_64(before, bin_sum(bin, by_count));
      if (!less_64(next, goal)) {
        found = vec4u(bin, atomicLoad(&bin_counts[bin]), before);
        break;
      }
      before = next;
    }
  }
  return workgroupUniformLoad(&found);
}
