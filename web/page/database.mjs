// Where conversations lie: in IndexedDB, or where site data is blocked in memory, with the same five calls. No DOM.
// Read next: store.mjs.

const kDatabase = 'doppler-page';
const kStore = 'conversations';
const kVersion = 1;

/** @typedef {import('./tree.mjs').Conversation} Conversation */
/**
 * @typedef {object} Database
 * @property {boolean} isKept it outlives the page
 * @property {() => Promise<Conversation[]>} all
 * @property {(id: string) => Promise<Conversation | undefined>} get
 * @property {(id: string, change: (kept: Conversation | undefined) => Conversation) => Promise<void>} update
 *   in one transaction
 * @property {(id: string) => Promise<void>} remove
 * @property {() => Promise<void>} clear
 * @property {() => void} close
 */

/** @param {IDBFactory | undefined} factory @returns {Promise<Database>} */
export async function openDatabase(factory) {
  try {
    const request = /** @type {any} */ (factory).open(kDatabase, kVersion);
    request.onupgradeneeded = () => request.result.createObjectStore(kStore, { keyPath: 'id' });
    return indexed(await answerOf(request));
  } catch {
    return inMemory();
  }
}

/** The answer of an IndexedDB request. @template T @param {any} request @returns {Promise<T>} */
function answerOf(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** @param {any} database @returns {Database} */
function indexed(database) {
  database.onversionchange = () => database.close(); // a newer page in another tab goes first
  const objects = (mode) => database.transaction(kStore, mode).objectStore(kStore);
  const write = (work) => new Promise((resolve, reject) => {
    const store = objects('readwrite');
    const { transaction } = store;
    transaction.oncomplete = () => resolve(undefined);
    transaction.onerror = transaction.onabort = () => reject(transaction.error ?? new Error('The write was given up.'));
    work(store);
  });
  return {
    isKept: true,
    all: () => answerOf(objects('readonly').getAll()),
    get: (id) => answerOf(objects('readonly').get(id)),
    update: (id, change) => write((store) => {
      const reading = store.get(id);
      reading.onsuccess = () => store.put(change(reading.result));
    }),
    remove: (id) => write((store) => store.delete(id)),
    clear: () => write((store) => store.clear()),
    close: () => database.close(),
  };
}

/** @returns {Database} */
function inMemory() {
  /** @type {Map<string, Conversation>} */ const kept = new Map();
  return {
    isKept: false,
    all: async () => structuredClone([...kept.values()]),
    get: async (id) => structuredClone(kept.get(id)),
    update: async (id, change) => void kept.set(id, structuredClone(change(kept.get(id)))),
    remove: async (id) => void kept.delete(id),
    clear: async () => kept.clear(),
    close() {},
  };
}
