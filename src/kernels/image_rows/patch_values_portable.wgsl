// The values of patches of a picture, from its bytes. A workgroup makes WORKGROUP consecutive values of one patch (y of
// the grid), and each invocation makes one value. Nothing is shared. Exact.
@group(0) @binding(0) var<storage, read> pixels: array<u32>; // bytes, the first in the lowest bits
@group(0) @binding(1) var<storage, read> patches: array<vec2u>; // the first byte, the bytes of a row of the picture
@group(0) @binding(2) var<storage, read> levels: array<f32>;
@group(0) @binding(3) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let value = group.x * WORKGROUP + t;
  if (value >= N) { return; }
  let patch_place = patches[group.y];
  let at = group.y * N + value;
  if (patch_place.x == 0xFFFFFFFFu) {
    x[at] = 0.0;
    return;
  }
  var channel = value % 3u;
  var pixel = value / 3u % (EDGE * EDGE);
  if (!CHANNELS_LAST) {
    channel = value / (N / 3u);
    pixel = value % (EDGE * EDGE);
  }
  let byte = patch_place.x + pixel / EDGE * patch_place.y + pixel % EDGE * 3u + channel;
  let word = pixels[min(byte / 4u, WORDS - 1u)];
  x[at] = levels[channel * 256u + extractBits(word, byte % 4u * 8u, 8u)];
}
