// Two versions of one conversation become one, so that tabs which write at the same time lose nothing. The version of a
// message that was changed last stays. A removed message stays away, unless a message was written below it that the
// remover did not know. Plain data, no DOM. Read next: store.mjs, which merges at each write.

/** @typedef {import('./tree.mjs').Conversation} Conversation */
/** @typedef {import('./tree.mjs').Message} Message */

const kTexts = /** @type {const} */ (['title', 'system']);

/** @param {Message} message */
const changeOf = (message) => message.changed ?? message.created;

/**
 * Takes into `mine` what `other` has beyond it. Objects of `mine` stay the same ones, since answers that grow are held
 * elsewhere.
 * @param {Conversation} mine @param {Conversation} other @returns {boolean} whether `mine` is another now
 */
export function absorb(mine, other) {
  const before = JSON.stringify(mine);
  for (const [id, time] of Object.entries(other.removed ?? {})) {
    mine.removed ??= {};
    mine.removed[id] = Math.max(mine.removed[id] ?? 0, time);
  }
  const own = new Map(mine.messages.map((message) => [message.id, message]));
  for (const message of other.messages) {
    const known = own.get(message.id);
    if (!known) mine.messages.push(structuredClone(message)); // its parent stands before it there, hence also here
    else if (changeOf(message) > changeOf(known)) replace(known, message);
  }
  dropRemoved(mine);
  for (const name of kTexts) {
    if ((other.edited?.[name] ?? 0) <= (mine.edited?.[name] ?? 0)) continue;
    mine[name] = other[name];
    mine.edited = { ...mine.edited, [name]: other.edited?.[name] };
  }
  const here = new Set(mine.messages.map((message) => message.id));
  mine.chosen = { ...other.chosen, ...mine.chosen };
  for (const [parent, child] of Object.entries(mine.chosen)) {
    if (!here.has(child) || (parent !== '' && !here.has(parent))) delete mine.chosen[parent];
  }
  mine.updated = Math.max(mine.updated, other.updated);
  return JSON.stringify(mine) !== before;
}

/** @param {any} known @param {any} message */
function replace(known, message) {
  for (const name of Object.keys(known)) if (!(name in message)) delete known[name];
  Object.assign(known, structuredClone(message));
}

/** @param {Conversation} conversation */
function dropRemoved(conversation) {
  const { removed = {}, messages } = conversation;
  const alive = new Set();
  for (const message of messages.toReversed()) { // a parent stands before its children
    if (alive.has(message.id) || !(removed[message.id] >= changeOf(message))) {
      alive.add(message.id);
      if (message.parent !== null) alive.add(message.parent);
    }
  }
  conversation.messages = messages.filter((message) => alive.has(message.id));
}
