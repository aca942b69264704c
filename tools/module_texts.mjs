// Moves constants from one WebAssembly module to another that shares its memory: they are left out of the data of the
// first, and the second writes them to the same places when it starts. Used by split_module.mjs.

const kData = 11;
const kDataCount = 12;
const kHeader = 8;
const kConstant = 0x41; // i32.const
const kEnd = 0x0b;

/** A reader of the encodings of a module. @param {Buffer} bytes @param {number} at */
function reader(bytes, at) {
  const unsigned = () => {
    let value = 0;
    for (let shift = 0, byte = 0x80; byte & 0x80; shift += 7) {
      byte = bytes[at++];
      value |= (byte & 0x7f) << shift;
    }
    return value >>> 0;
  };
  const signed = () => {
    let value = 0, shift = 0, byte = 0x80;
    for (; byte & 0x80; shift += 7) {
      byte = bytes[at++];
      value |= (byte & 0x7f) << shift;
    }
    return shift < 32 && byte & 0x40 ? value | (-1 << shift) : value;
  };
  const take = (count) => bytes.subarray(at, (at += count));
  return { unsigned, signed, take, byte: () => bytes[at++], at: () => at };
}

/** @param {number} value */
function unsigned(value) {
  const out = [];
  for (; value > 0x7f; value >>>= 7) out.push((value & 0x7f) | 0x80);
  return Buffer.from([...out, value]);
}

/** @param {number} value */
function signed(value) {
  const out = [];
  for (;; value >>= 7) {
    const isLast = (value >> 6 === 0) || (value >> 6 === -1);
    out.push((value & 0x7f) | (isLast ? 0 : 0x80));
    if (isLast) return Buffer.from(out);
  }
}

/** @typedef {{id: number, bytes: Buffer}} Section */
/** @typedef {{start: number, bytes: Buffer}} Segment written to memory when the module starts */

/** @param {Buffer} module @returns {Section[]} */
function sectionsOf(module) {
  const from = reader(module, kHeader);
  const out = [];
  while (from.at() < module.length) out.push({ id: from.byte(), bytes: from.take(from.unsigned()) });
  return out;
}

/** @param {Buffer} module @param {Section[]} sections */
function moduleOf(module, sections) {
  const parts = sections.flatMap(({ id, bytes }) => [Buffer.from([id]), unsigned(bytes.length), bytes]);
  return Buffer.concat([module.subarray(0, kHeader), ...parts]);
}

/** @param {Section[]} sections @returns {Segment[]} */
function segmentsOf(sections) {
  const data = sections.find(({ id }) => id === kData);
  if (!data) return [];
  const from = reader(data.bytes, 0);
  return Array.from({ length: from.unsigned() }, () => {
    const kind = from.unsigned(), constant = from.byte(), start = from.signed(), end = from.byte();
    if (kind !== 0 || constant !== kConstant || end !== kEnd) throw new Error('The module has data without a fixed place.');
    return { start, bytes: from.take(from.unsigned()) };
  });
}

/** @param {Section[]} sections @param {Segment[]} segments */
function withSegments(sections, segments) {
  const rows = segments.flatMap(({ start, bytes }) =>
    [Buffer.from([0, kConstant]), signed(start), Buffer.from([kEnd]), unsigned(bytes.length), bytes]);
  const data = { id: kData, bytes: Buffer.concat([unsigned(segments.length), ...rows]) };
  const others = sections.filter(({ id }) => id !== kData)
    .map((section) => (section.id === kDataCount ? { id: kDataCount, bytes: unsigned(segments.length) } : section));
  const isAfter = ({ id }) => id === 0 && others.some((other) => other.id !== 0);
  let at = others.length; // before the custom sections at the end
  while (at > 0 && isAfter(others[at - 1])) at--;
  return [...others.slice(0, at), data, ...others.slice(at)];
}

/** The segment without some parts of it, which become segments of `moved`. */
function without(segment, texts, moved) {
  const parts = texts.map((text) => ({ at: segment.bytes.indexOf(text), text })).filter(({ at }) => at >= 0);
  parts.sort((a, b) => a.at - b.at);
  const left = [];
  let done = 0;
  for (const { at, text } of parts) {
    if (at < done) continue; // inside the part before
    if (at > done) left.push({ start: segment.start + done, bytes: segment.bytes.subarray(done, at) });
    moved.push({ start: segment.start + at, bytes: segment.bytes.subarray(at, at + text.length) });
    done = at + text.length;
  }
  if (done < segment.bytes.length) left.push({ start: segment.start + done, bytes: segment.bytes.subarray(done) });
  return left;
}

/**
 * @param {Buffer} first @param {Buffer} second @param {Buffer[]} texts that only functions of the second module read
 * @returns {[Buffer, Buffer]}
 */
export function moveTexts(first, second, texts) {
  const from = sectionsOf(first), to = sectionsOf(second);
  /** @type {Segment[]} */ const moved = [];
  const left = segmentsOf(from).flatMap((segment) => without(segment, texts, moved));
  return [moduleOf(first, withSegments(from, left)), moduleOf(second, withSegments(to, [...segmentsOf(to), ...moved]))];
}
