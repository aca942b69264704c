// Whether a model fits this device, as far as browsers tell: they hide a GPU's memory and round the machine's. No DOM.
import { bytesText } from './format.mjs';

const kGiB = 2 ** 30;
const kMostTold = 8; // GiB: browsers tell no more, some tell up to 32
const kEasy = 0.5; // of the machine's memory, which a GPU without its own shares with everything else
const kTight = 0.85;

/** @param {number | null} bytes that the model takes @param {number} [memoryGiB] of the machine; undefined: not told
 * @returns {{mark: "fits" | "tight" | "no" | "", text: string}} */
export function fit(bytes, memoryGiB = globalThis.navigator?.deviceMemory) {
  if (!bytes || !memoryGiB) return { mark: '', text: '' };
  const share = bytes / (memoryGiB * kGiB);
  if (share <= kEasy) return { mark: 'fits', text: 'fits this device' };
  if (memoryGiB >= kMostTold) return { mark: 'tight', text: `wants a GPU with ${bytesText(bytes)}` };
  if (share <= kTight) return { mark: 'tight', text: 'may be too large for this device' };
  return { mark: 'no', text: 'too large for this device' };
}
