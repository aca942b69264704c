// One invocation adds 1 to a counter, so that each dispatch must wait for the one before. Nothing shared.
@group(0) @binding(0) var<storage, read_write> counter: array<u32>;

@compute @workgroup_size(1)
fn main() {
  counter[0] = counter[0] + 1u;
}
