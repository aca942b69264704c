// The unsent text of each conversation. All conversations without a message share one place. Survives a reload. No DOM.
const kKey = 'doppler-drafts';
const kMost = 50; // conversations, the latest

export class Drafts {
  #texts;

  /** @param {import('./kept.mjs').KeptTexts} texts */
  constructor(texts) {
    this.#texts = texts;
  }

  /** @param {import('./tree.mjs').Conversation} conversation @returns {string} */
  of(conversation) {
    return this.#all()[placeOf(conversation)] ?? '';
  }

  /** @param {import('./tree.mjs').Conversation} conversation @param {string} text */
  keep(conversation, text) {
    const place = placeOf(conversation);
    const { [place]: old, ...others } = this.#all();
    const kept = text === '' ? others : { ...others, [place]: text };
    this.#texts.setItem(kKey, JSON.stringify(Object.fromEntries(Object.entries(kept).slice(-kMost))));
  }

  /** @returns {Record<string, string>} */
  #all() {
    try {
      return JSON.parse(this.#texts.getItem(kKey) ?? '{}');
    } catch {
      return {};
    }
  }
}

/** @param {import('./tree.mjs').Conversation} conversation */
const placeOf = ({ id, messages }) => (messages.length > 0 ? id : 'new');
