// The whole 64-bit product of two u32, as (low, high): WGSL has no 64-bit integers.
fn mul_wide(a: u32, b: u32) -> vec2u {
  let low = (a & 0xFFFFu) * (b & 0xFFFFu);
  let middle_1 = (a >> 16u) * (b & 0xFFFFu) + (low >> 16u); // cannot overflow: (2^16-1)^2 + 2^16-1 < 2^32
  let middle_2 = (a & 0xFFFFu) * (b >> 16u) + (middle_1 & 0xFFFFu);
  let high = (a >> 16u) * (b >> 16u) + (middle_1 >> 16u) + (middle_2 >> 16u);
  return vec2u((middle_2 << 16u) | (low & 0xFFFFu), high);
}
