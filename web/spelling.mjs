// Spells tokens, for the log-probabilities of an answer: text, and its bytes, which may be part of a character.

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export class Spelling {
  #bytes;
  /** Where each token's bytes begin, and how many they are. @type {Int32Array} */ #at;
  /** Of tokens that stand for no text. @type {Map<number, string>} */ #special = new Map();

  /** @param {import('./grammars.mjs').Vocabulary} vocabulary */
  constructor({ bytes }) {
    this.#bytes = bytes;
    const at = [];
    for (let i = 0; i < bytes.length;) {
      const count = bytes[i] + bytes[i + 1] * 256;
      at.push(i + 2, count);
      i += 2 + count;
    }
    this.#at = Int32Array.from(at);
  }

  /**
   * @param {number[]} tokens
   * @param {{logprob: number, top: {token: number, logprob: number}[]}[]} logprobs of each of them
   * @param {(id: number) => Promise<{text: string}>} detokenize
   */
  async of(tokens, logprobs, detokenize) {
    const spelled = async (id, logprob) => {
      const count = this.#at[2 * id + 1] ?? 0;
      if (count > 0) {
        const bytes = this.#bytes.subarray(this.#at[2 * id], this.#at[2 * id] + count);
        return { token: decoder.decode(bytes), logprob, bytes: [...bytes] };
      }
      if (!this.#special.has(id)) this.#special.set(id, await detokenize(id).then(({ text }) => text, () => `token_id:${id}`));
      const text = this.#special.get(id) ?? '';
      return { token: text, logprob, bytes: [...encoder.encode(text)] };
    };
    const out = [];
    for (const [i, { logprob, top }] of logprobs.entries()) {
      const best = [];
      for (const entry of top) best.push(await spelled(entry.token, entry.logprob));
      out.push({ ...(await spelled(tokens[i], logprob)), top: best });
    }
    return out;
  }
}
