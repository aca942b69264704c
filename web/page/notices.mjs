// Sentences that come up at the edge of the page and go by themselves; read aloud by screen readers.
import { h, iconButton } from './dom.mjs';

const kShownMs = 7000;
const kWithActionMs = 12000; // to read it and to reach the button

/**
 * @param {string} text
 * @param {{kind?: "plain" | "error", stays?: boolean, action?: {name: string, run: () => void}}} [options] stays: until
 *   it is dismissed
 * @returns {() => void} how to take it away
 */
export function notice(text, { kind = 'plain', stays = false, action } = {}) {
  const close = () => box.remove();
  const act = action && h('button', { type: 'button', class: 'plain', onclick: () => {
    close();
    action.run();
  } }, action.name);
  const box = h('div', { class: `notice ${kind}` }, h('span', {}, text), act, iconButton('close', 'Dismiss', close));
  document.getElementById('notices')?.append(box);
  if (!stays) setTimeout(close, action ? kWithActionMs : kShownMs);
  return close;
}
