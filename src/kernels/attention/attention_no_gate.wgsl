// For entries of decode attention whose result is not gated. Twin of gate_at() in attention_decode_rope.
const HAS_GATE = false;

fn gate_at(head: u32, quad: u32) -> vec4f { return vec4f(1.0); }
