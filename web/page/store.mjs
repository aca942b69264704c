// Conversations in IndexedDB, and as one JSON file out of the browser and back. Several tabs may be open: each hears of
// what another one wrote. No DOM; tests give a database of their own. Read next: tree.mjs.

const kDatabase = 'doppler-page';
const kStore = 'conversations';
const kFormat = 'doppler-conversations';
const kVersion = 1;

/** @typedef {import('./tree.mjs').Conversation} Conversation */

/** The answer of an IndexedDB request. @template T @param {any} request @returns {Promise<T>} */
function answerOf(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export class ConversationStore extends EventTarget {
  /** @type {any} */ #database;
  #channel = new BroadcastChannel(kDatabase);

  /** @param {IDBFactory} [factory] @returns {Promise<ConversationStore>} */
  static async open(factory = globalThis.indexedDB) {
    const store = new ConversationStore();
    const request = factory.open(kDatabase, kVersion);
    request.onupgradeneeded = () => request.result.createObjectStore(kStore, { keyPath: 'id' });
    store.#database = await answerOf(request);
    store.#database.onversionchange = () => store.#database.close(); // a newer page in another tab goes first
    store.#channel.onmessage = () => store.dispatchEvent(new Event('change'));
    return store;
  }

  /** All conversations, the last one written first. @returns {Promise<Conversation[]>} */
  async all() {
    const list = await answerOf(this.#objects('readonly').getAll());
    return list.sort((a, b) => b.updated - a.updated);
  }

  /** @param {string} id @returns {Promise<Conversation | undefined>} */
  get(id) {
    return answerOf(this.#objects('readonly').get(id));
  }

  /** @param {Conversation} conversation */
  async put(conversation) {
    await answerOf(this.#objects('readwrite').put(conversation));
    this.#tell();
  }

  /** @param {string} id */
  async remove(id) {
    await answerOf(this.#objects('readwrite').delete(id));
    this.#tell();
  }

  async clear() {
    await answerOf(this.#objects('readwrite').clear());
    this.#tell();
  }

  /** @returns {Promise<string>} a JSON file that importText takes */
  async exportText() {
    return JSON.stringify({ format: kFormat, version: kVersion, conversations: await this.all() }, null, 1);
  }

  /** Adds the conversations of a file. One that is here already is replaced only by a newer one.
   * @param {string} text @returns {Promise<{added: number, replaced: number, kept: number}>} */
  async importText(text) {
    const counts = { added: 0, replaced: 0, kept: 0 };
    for (const conversation of parseExport(text)) {
      const mine = await this.get(conversation.id);
      if (mine && mine.updated >= conversation.updated) {
        counts.kept++;
        continue;
      }
      await answerOf(this.#objects('readwrite').put(conversation));
      counts[mine ? 'replaced' : 'added']++;
    }
    this.#tell();
    return counts;
  }

  close() {
    this.#channel.close();
    this.#database.close();
  }

  /** @param {"readonly" | "readwrite"} mode @returns {any} */
  #objects(mode) {
    return this.#database.transaction(kStore, mode).objectStore(kStore);
  }

  #tell() {
    this.#channel.postMessage('change');
    this.dispatchEvent(new Event('change'));
  }
}

/**
 * The conversations of an exported file; throws a sentence if the file is none.
 * @param {string} text
 * @returns {Conversation[]}
 */
export function parseExport(text) {
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error('The file is not JSON.');
  }
  if (file?.format !== kFormat || !Array.isArray(file.conversations)) {
    throw new Error(`The file's "format" is ${JSON.stringify(file?.format ?? null)}; "${kFormat}" is allowed.`);
  }
  if (file.version !== kVersion) {
    throw new Error(`The file's version is ${JSON.stringify(file.version ?? null)}; this page reads version ${kVersion}.`);
  }
  return file.conversations.map(checked);
}

const isText = (value) => typeof value === 'string';
const isTime = (value) => Number.isFinite(value) && value >= 0;

/**
 * Only known fields with right types go in: what is shown later may rely on them.
 * @param {any} from
 * @param {number} index
 */
function checked(from, index) {
  const wrong = (what) => new Error(`Conversation ${index + 1} of the file ${what}.`);
  if (!isText(from?.id) || !isText(from.title) || !isTime(from.created) || !isTime(from.updated)) {
    throw wrong('lacks an id, a title or a time');
  }
  if (!Array.isArray(from.messages)) throw wrong('has no list of messages');
  const seen = new Set();
  const messages = from.messages.map((message) => {
    const isKnownRole = ['user', 'assistant', 'tool'].includes(message?.role);
    if (!isText(message?.id) || !isKnownRole || !isText(message.content)) throw wrong('has a message without id, role or text');
    if (message.parent !== null && !seen.has(message.parent)) throw wrong('has a message whose parent does not stand before it');
    if (seen.has(message.id)) throw wrong('has two messages of one id');
    seen.add(message.id);
    const { id, parent, role, content } = message;
    const kept = { id, parent, role, content, created: isTime(message.created) ? message.created : from.created };
    for (const name of ['reasoning', 'model', 'stop', 'error', 'call']) if (isText(message[name])) kept[name] = message[name];
    const areCalls = Array.isArray(message.calls) && message.calls.every((call) => isText(call?.id) && isText(call.name) && isText(call.arguments));
    if (areCalls) kept.calls = message.calls.map(({ id: of, name, arguments: text }) => ({ id: of, name, arguments: text }));
    if (typeof message.figures === 'object' && message.figures) kept.figures = message.figures;
    return kept;
  });
  const chosen = {};
  for (const [parent, child] of Object.entries(from.chosen ?? {})) if (isText(child) && seen.has(child)) chosen[parent] = child;
  const { id, title, created, updated } = from;
  return { id, title, created, updated, system: isText(from.system) ? from.system : '', messages, chosen };
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
