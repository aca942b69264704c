// Sentences that come up at the edge of the page and go by themselves; read aloud by screen readers.
import { h, iconButton } from './dom.mjs';

const kShownMs = 7000;

/** @param {string} text @param {"plain" | "error"} [kind] */
export function notice(text, kind = 'plain') {
  const close = () => box.remove();
  const box = h('div', { class: `notice ${kind}` }, h('span', {}, text), iconButton('close', 'Dismiss', close));
  document.getElementById('notices')?.append(box);
  setTimeout(close, kShownMs);
}
