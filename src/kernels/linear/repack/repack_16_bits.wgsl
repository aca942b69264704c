// f16 and bf16: as stored.
//!import linear/repack/repack_bytes

fn read_eight(row_at: u32, eight: u32) -> vec4<u32> { return words_at(row_at + 16u * eight); }
