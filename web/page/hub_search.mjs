// Models of Hugging Face by words: what is there as GGUF, its files with their sizes. The hub's answers are from a
// stranger. No DOM.
import { nameOf } from './catalogue.mjs';

const kHub = 'https://huggingface.co';
const kMostFound = 12;
const kUsual = ['Q4_K_M', 'Q4_0', 'Q8_0']; // best first, as hub.mjs takes them
const kIsPart = /-\d{5}-of-\d{5}\.gguf$/i; // of a split file

/** @typedef {{repo: string, downloads: number}} Found */

/** @param {string} words @param {AbortSignal} [signal] @returns {Promise<Found[]>} the most downloaded first */
export async function search(words, signal) {
  const query = new URLSearchParams({ search: words, filter: 'gguf', sort: 'downloads', direction: '-1', limit: String(kMostFound) });
  const list = await answerOf(`${kHub}/api/models?${query}`, signal);
  return (Array.isArray(list) ? list : []).filter(({ id }) => /^[\w.-]+\/[\w.-]+$/.test(id))
    .map(({ id, downloads }) => ({ repo: id, downloads: Number(downloads) || 0 }));
}

/** The file of a repository that would be loaded. @param {string} repo @param {AbortSignal} [signal]
 * @returns {Promise<import('./catalogue.mjs').Entry | null>} null: no GGUF file in one part */
export async function entryOf(repo, signal) {
  const list = await answerOf(`${kHub}/api/models/${repo}/tree/main?recursive=true`, signal);
  const files = (Array.isArray(list) ? list : []).filter(({ path, size }) =>
    /\.gguf$/i.test(path) && !/(^|\/)mmproj/i.test(path) && !kIsPart.test(path) && Number.isFinite(size));
  const of = (word) => files.find(({ path }) => path.toLowerCase().split(/[-./]/).includes(word.toLowerCase()));
  const word = kUsual.find(of);
  const file = word ? of(word) : files.sort((a, b) => a.size - b.size)[0];
  if (!file) return null;
  const source = `${repo}:${file.path.slice(file.path.lastIndexOf('/') + 1)}`;
  return { source, name: nameOf(file.path), bytes: file.size, added: true };
}

/** @param {string} address @param {AbortSignal} [signal] @returns {Promise<any>} */
async function answerOf(address, signal) {
  let answer;
  try {
    answer = await fetch(address, { signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Error(`${kHub} could not be reached: ${/** @type {Error} */ (error).message}.`);
  }
  if (!answer.ok) throw new Error(`${kHub} answered ${answer.status}.`);
  return answer.json();
}
