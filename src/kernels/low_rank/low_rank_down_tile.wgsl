// low = A x of the rows' own adapters. A workgroup makes four numbers of eight rows each, so that a chunk's rows read A
// from a cache near by. 32 invocations read a row. Grid: four numbers of `low`, eight rows. Shared: the partial sums.
// Error: relative L2 below 1e-5. Consts: K, WIDTH.
//!import low_rank/rows_one
//!import low_rank/x_f32
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> adapters: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> x: array<XElement>;
@group(0) @binding(3) var<storage, read> x_scales: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read> square_sums: array<f32>;
@group(0) @binding(5) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> low: array<vec4<f32>>;

const kQuads = (K + 3u) / 4u;
const kLanes = 32u;
const kTileRows = 8u;
var<workgroup> partial: array<vec4f, kTileRows * kLanes>;

@compute @workgroup_size(kTileRows * kLanes)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let row = group.y * kTileRows + t / kLanes;
  let lane = t % kLanes;
  var adapter = 0u;
  if (row < row_count()) { adapter = adapter_of(row); }
  var sums = vec4f();
  if (adapter != 0u) {
    let first = ((adapter - 1u) * WIDTH + group.x * 4u) * kQuads;
    for (var quad = lane; quad < kQuads; quad += kLanes) {
      let v = load_x(row, quad);
      sums += vec4f(dot(a[first + quad], v), dot(a[first + kQuads + quad], v), dot(a[first + 2u * kQuads + quad], v),
                    dot(a[first + 3u * kQuads + quad], v));
    }
  }
  partial[t] = sums;
  for (var step = kLanes / 2u; step > 0u; step /= 2u) {
    workgroupBarrier();
    if (lane < step) { partial[t] += partial[t + step]; }
  }
  if (lane == 0u && adapter != 0u) { low[row * (WIDTH / 4u) + group.x] = partial[t]; }
}
