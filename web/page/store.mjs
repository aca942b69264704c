// The conversations of this browser. Several tabs may be open: each write is merged with what another tab wrote
// meanwhile, and each tab hears of it ("change", detail: the conversation's id, and whether another tab wrote it). A
// text that cannot be written is held in memory and tried again at the next write ("problem", detail: a sentence, empty
// when all is written). No DOM. Read next: database.mjs (where they lie), merge.mjs (how two versions become one),
// tree.mjs.
import { exportText, parseExport } from './conversation_file.mjs';
import { openDatabase } from './database.mjs';
import { absorb } from './merge.mjs';

const kChannel = 'doppler-page';

/** @typedef {import('./tree.mjs').Conversation} Conversation */

export class ConversationStore extends EventTarget {
  /** @type {import('./database.mjs').Database} */ #database;
  #channel = new BroadcastChannel(kChannel);
  /** @type {Map<string, Conversation>} */ #unwritten = new Map();
  #problem = '';

  /** @param {import('./database.mjs').Database} database */
  constructor(database) {
    super();
    this.#database = database;
    this.#channel.onmessage = ({ data }) => this.#changed(data, true);
  }

  /** @param {IDBFactory} [factory] @returns {Promise<ConversationStore>} */
  static async open(factory = usualFactory()) {
    return new ConversationStore(await openDatabase(factory));
  }

  /** Whether they outlive the page. */
  get isKept() {
    return this.#database.isKept;
  }

  /** All conversations, the last one written first. @returns {Promise<Conversation[]>} */
  async all() {
    const kept = await this.#database.all().catch(() => []);
    const list = [...kept.filter(({ id }) => !this.#unwritten.has(id)), ...this.#unwritten.values()];
    return list.sort((a, b) => b.updated - a.updated);
  }

  /** @param {string} id @returns {Promise<Conversation | undefined>} */
  async get(id) {
    return this.#unwritten.get(id) ?? this.#database.get(id).catch(() => undefined);
  }

  /** Writes it, with what other tabs wrote into it; `conversation` has that too then. Does not throw.
   * @param {Conversation} conversation @param {boolean} [isForeign] it did not come from the chat of this tab */
  async put(conversation, isForeign = false) {
    this.#unwritten.set(conversation.id, conversation);
    const problem = await this.#write().then(() => '', (error) => error?.message || String(error));
    this.#tell(conversation.id, isForeign);
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.dispatchEvent(new CustomEvent('problem', { detail: problem }));
  }

  async #write() {
    for (const [id, conversation] of this.#unwritten) {
      await this.#database.update(id, (kept) => {
        if (kept) absorb(conversation, kept);
        return conversation;
      });
      this.#unwritten.delete(id);
    }
  }

  /** @param {string} id */
  async remove(id) {
    this.#unwritten.delete(id);
    await this.#database.remove(id);
    this.#tell(id);
  }

  async clear() {
    this.#unwritten.clear();
    await this.#database.clear();
    this.#tell('');
  }

  /** @returns {Promise<string>} a JSON file that importText takes */
  async exportText() {
    return exportText(await this.all());
  }

  /** Adds the conversations of a file; one that is here already takes what it lacks.
   * @param {string} text @returns {Promise<{added: number, merged: number, kept: number}>} */
  async importText(text) {
    const counts = { added: 0, merged: 0, kept: 0 };
    for (const conversation of parseExport(text)) {
      const mine = await this.get(conversation.id);
      if (!mine) {
        counts.added++;
        await this.put(conversation);
        continue;
      }
      const here = new Set(mine.messages.map(({ id }) => id));
      // Messages that another tab removed count as changed too.
      for (const message of conversation.messages) if (!here.has(message.id)) message.changed = Date.now();
      const isOther = absorb(mine, conversation);
      counts[isOther ? 'merged' : 'kept']++;
      if (isOther) await this.put(mine, true);
    }
    return counts;
  }

  close() {
    this.#channel.close();
    this.#database.close();
  }

  /** @param {string} id @param {boolean} [isForeign] */
  #tell(id, isForeign = false) {
    this.#channel.postMessage(id);
    this.#changed(id, isForeign);
  }

  /** @param {string} id @param {boolean} isForeign */
  #changed(id, isForeign) {
    this.dispatchEvent(new CustomEvent('change', { detail: { id, isForeign } }));
  }
}

/** Throws in some browsers where site data is blocked. @returns {IDBFactory | undefined} */
function usualFactory() {
  try {
    return globalThis.indexedDB;
  } catch {
    return undefined;
  }
}

/**
 * True if every word of `query` stands in the title or in a message.
 * @param {Conversation} conversation
 * @param {string} query
 */
export function matches(conversation, query) {
  const text = [conversation.title, ...conversation.messages.map((message) => message.content)].join('\n').toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
