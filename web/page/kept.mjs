// The browser's localStorage, or where site data is blocked a storage in memory of the same shape. No DOM.

/**
 * @typedef {{getItem: (key: string) => string | null, setItem: (key: string, text: string) => void,
 *   removeItem: (key: string) => void}} KeptTexts
 */

/** @returns {KeptTexts & {isKept: boolean}} isKept: it outlives the page */
export function keptTexts() {
  try {
    const storage = globalThis.localStorage; // throws where site data is blocked
    storage.getItem('');
    const unwritten = new Map(); // of a full storage: these hold until the page is closed
    return {
      isKept: true,
      getItem: (key) => unwritten.get(key) ?? storage.getItem(key),
      setItem(key, text) {
        unwritten.delete(key);
        try {
          storage.setItem(key, text);
        } catch {
          unwritten.set(key, text);
        }
      },
      removeItem(key) {
        unwritten.delete(key);
        storage.removeItem(key);
      },
    };
  } catch {
    const texts = new Map();
    return {
      isKept: false,
      getItem: (key) => texts.get(key) ?? null,
      setItem: (key, text) => void texts.set(key, text),
      removeItem: (key) => void texts.delete(key),
    };
  }
}
