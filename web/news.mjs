// The part of an answer that its caller already has, in UTF-16 units; the beginning of a call of a tool counts as one.
// An answer that begins again, on another device or in another worker, first gives what was told already.

/** @param {{text?: string, events?: [string, string][]}} piece */
export function unitsOf({ text = '', events = [] }) {
  return events.reduce((sum, [kind, value]) => sum + (kind === 'call' ? 1 : value.length), text.length);
}

/** Gives the part of a generation's pieces that the caller has not yet. */
export class News {
  #unseen;
  #isChat;

  /** @param {number} told units @param {boolean} isChat */
  constructor(told, isChat) {
    this.#unseen = told;
    this.#isChat = isChat;
  }

  /**
   * @param {string} text as the core gives it: plain, or of a chat a list of events
   * @returns {{units: number, piece: any}}
   */
  of(text) {
    if (!this.#isChat) {
      const fresh = this.#rest(text);
      return { units: fresh.length, piece: { text: fresh } };
    }
    const events = [];
    for (const [kind, value] of text === '' ? [] : JSON.parse(text)) {
      const fresh = kind === 'call' ? this.#rest(' ') && value : this.#rest(value);
      if (fresh) events.push([kind, fresh]);
    }
    return { units: unitsOf({ events }), piece: { events } };
  }

  /** @param {string} text */
  #rest(text) {
    const seen = Math.min(this.#unseen, text.length);
    this.#unseen -= seen;
    return text.slice(seen);
  }
}
