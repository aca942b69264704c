// Values that workgroups of one dispatch hand to each other. WGSL orders nothing between workgroups, so a counter says
// nothing about plain stores before it. Therefore every word is an atomic that proves itself: 24 bits of value below an
// 8-bit tag, which is the number of this dispatch. Each word is written once a dispatch, and a reader loads it again
// until its tag is the expected one. Words of an older dispatch have another tag: all words are written each time.
// Waiting is bounded: after SPIN_LIMIT polls of an invocation, summed over the dispatch, it goes on with the words that
// are there, and the dispatch is marked as failed (kFault). A barrier stands before a wait for words of the own
// workgroup, since nothing promises that its invocations make progress while others wait.
// Blocks of 16 values (common/forms.h) travel in 8 words: the codes, three a word; d; a sum of squares, which not all
// readers need. Word j of block b is number j * blocks + b, so that neighbours read neighbours.
// Binding of the entry: exchange. Consts: SPIN_LIMIT, IS_LAVAPIPE.
//!import persistent/persistent_arrive

const kBlockWords = 8u;
const kScaleWord = 6u;  // d
const kSquaresWord = 7u;

var<private> tag: u32;
var<private> spins_left: u32;

// Lavapipe moves plain loads out of a loop that waits, so there the loop adds zero instead.
fn look(at: u32) -> u32 {
  if (IS_LAVAPIPE) { return atomicAdd(&exchange[at], 0u); }
  return atomicLoad(&exchange[at]);
}

fn send(at: u32, value: u32) { atomicStore(&exchange[at], value | tag); }

// An f32 rounded to 16 significant bits.
fn value_of(number: f32) -> u32 { return (bitcast<u32>(number) + 0x80u) >> 8u; }
fn number_of(value: u32) -> f32 { return bitcast<f32>(value << 8u); }

fn is_stale(difference: u32) -> bool { return difference >= 0x1000000u; }

// Work that no compiler leaves out, without a loop.
fn idle_1(x: u32) -> u32 { return (x ^ (x >> 15u)) * 0x2c1b3c6du + 1u; }
fn idle_4(x: u32) -> u32 { return idle_1(idle_1(idle_1(idle_1(x)))); }
fn idle_16(x: u32) -> u32 { return idle_4(idle_4(idle_4(idle_4(x)))); }
fn idle_64(x: u32) -> u32 { return idle_16(idle_16(idle_16(idle_16(x)))); }

// One poll less until the spin limit. It depends on the word that was seen: a compiler knows how often a loop runs that
// just counts down, and makes several copies, while this kernel has too much code already.
// Lavapipe silently ends whatever loop an invocation is in after 65,535 iterations and additions. So there a poll takes
// longer, and `spins_left` counts both and ends well before that: `additions` of a poll.
fn wait_again(seen: u32, additions: u32) {
  var spent = min(seen >> 24u, 1u);
  if (IS_LAVAPIPE) { spent += additions + select(0u, 1u, idle_64(seen) == 1u); }
  spins_left -= min(spins_left, spent);
}

fn receive_f32(at: u32) -> f32 {
  var word = look(at) ^ tag;
  while (is_stale(word) && spins_left > 0u) {
    wait_again(word, 1u);
    word = look(at) ^ tag;
  }
  if (is_stale(word)) { spins_left = 0u; }
  return number_of(word);
}

// Two words that are polled together.
fn receive_two(first: u32, second: u32) -> vec2<f32> {
  var words = vec2<u32>(look(first), look(second)) ^ vec2<u32>(tag);
  while (is_stale(words.x | words.y) && spins_left > 0u) {
    wait_again(words.x | words.y, 2u);
    words = vec2<u32>(look(first), look(second)) ^ vec2<u32>(tag);
  }
  if (is_stale(words.x | words.y)) { spins_left = 0u; }
  return vec2<f32>(number_of(words.x), number_of(words.y));
}

// A received block.
struct Block {
  codes: vec4<u32>,
  d: f32,
  squares: f32,
}

// `at`: of word 0 of the block, the others `blocks` further each. A poll loads all words, so that no second trip to the
// cache follows the one that finds them there.
fn receive_block(at: u32, blocks: u32, has_squares: bool) -> Block {
  var low = vec4<u32>();
  var high = vec4<u32>();
  var seen = 0u;
  if (IS_LAVAPIPE) { _ = receive_f32(at); }  // with fewer additions, which are counted there
  loop {
    low = vec4<u32>(look(at), look(at + blocks), look(at + 2u * blocks), look(at + 3u * blocks)) ^ vec4<u32>(tag);
    high = vec4<u32>(look(at + 4u * blocks), look(at + 5u * blocks), look(at + kScaleWord * blocks), tag) ^
           vec4<u32>(tag);
    if (has_squares) { high.w = look(at + kSquaresWord * blocks) ^ tag; }
    let both = low | high;
    seen = (both.x | both.y) | (both.z | both.w);
    if (!is_stale(seen) || spins_left == 0u) { break; }
    wait_again(seen, 8u);
  }
  if (is_stale(seen)) { spins_left = 0u; }
  return Block(vec4<u32>(low.x | (low.y << 24u), (low.y >> 8u) | (low.z << 16u), (low.z >> 16u) | (low.w << 8u),
                         high.x | (high.y << 24u)),
               number_of(high.z), number_of(high.w));
}
