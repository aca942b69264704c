// A conversation as a tree of messages: an edited question and a second answer are siblings, and no message is
// overwritten. It is plain data, because it is stored and exported unchanged; only the functions below change it. No
// DOM.

/**
 * @typedef {object} Message
 * @property {string} id
 * @property {string | null} parent null: the conversation begins with it
 * @property {"user" | "assistant" | "tool"} role tool: the result of the call `call` of the answer above
 * @property {string} content
 * @property {string[]} [pictures] of a question: data URLs, shown before the text
 * @property {{id: string, name: string, arguments: string}[]} [calls] of tools, in an answer
 * @property {string} [call] its id
 * @property {string} [reasoning] what the model thought before it answered
 * @property {number} created milliseconds since 1970
 * @property {number} [changed] the last time; without it: created
 * @property {string} [model] which model answered
 * @property {object} [figures] of the answer: figures.mjs
 * @property {string} [stop] why the answer ended: "stop", "length", "cancelled"
 * @property {string} [error] the sentence of an answer that failed
 */
/**
 * @typedef {object} Conversation
 * @property {string} id
 * @property {string} title
 * @property {number} created @property {number} updated milliseconds since 1970
 * @property {string} system the system prompt
 * @property {Message[]} messages in the order in which they were written
 * @property {Record<string, number>} [removed] messages that were removed, and when: merge.mjs
 * @property {{title?: number, system?: number}} [edited] when these were written last
 * @property {Record<string, string>} chosen of each parent with several children ("" for the first message): the shown
 *   child
 */

const kRoot = '';

/** @param {number} now @param {string} [system] @returns {Conversation} */
export function newConversation(now, system = '') {
  return { id: crypto.randomUUID(), title: '', created: now, updated: now, system, messages: [], chosen: {} };
}

/** @param {Conversation} conversation @param {string} id */
export function find(conversation, id) {
  return conversation.messages.find((message) => message.id === id);
}

/** Adds a message below `parent` and shows it. @param {Conversation} conversation @param {string | null} parent
 * @param {Omit<Message, 'id' | 'parent' | 'created'>} what @param {number} now @returns {Message} */
export function append(conversation, parent, what, now) {
  const message = { ...what, id: crypto.randomUUID(), parent, created: now };
  conversation.messages.push(message);
  conversation.chosen[parent ?? kRoot] = message.id;
  conversation.updated = now;
  return message;
}

/** @param {Conversation} conversation @param {string | null} parent */
function children(conversation, parent) {
  return conversation.messages.filter((message) => message.parent === parent);
}

/**
 * The shown messages: from the first message to a leaf, by the chosen child of each.
 * @param {Conversation} conversation
 */
export function path(conversation) {
  const shown = [];
  for (let parent = null; ; ) {
    const choices = children(conversation, parent);
    if (choices.length === 0) return shown;
    const next = choices.find((message) => message.id === conversation.chosen[parent ?? kRoot]) ?? choices.at(-1);
    shown.push(next);
    parent = next.id;
  }
}

/** The message and its siblings, oldest first. @param {Conversation} conversation @param {string} id */
export function siblings(conversation, id) {
  return children(conversation, find(conversation, id)?.parent ?? null);
}

/** Shows `id` and the way to it. @param {Conversation} conversation @param {string} id */
export function choose(conversation, id) {
  for (let message = find(conversation, id); message; message = message.parent && find(conversation, message.parent)) {
    conversation.chosen[message.parent ?? kRoot] = message.id;
  }
}

/**
 * Removes a message and all that follows from it.
 * @param {Conversation} conversation @param {string} id @param {number} now
 * @returns {Message[]} what was removed, for restore()
 */
export function remove(conversation, id, now) {
  const gone = new Set([id]);
  // A parent always stands before its children.
  for (const message of conversation.messages) {
    if (message.parent !== null && gone.has(message.parent)) gone.add(message.id);
  }
  const removed = conversation.messages.filter((message) => gone.has(message.id));
  conversation.messages = conversation.messages.filter((message) => !gone.has(message.id));
  for (const [parent, child] of Object.entries(conversation.chosen)) {
    if (gone.has(parent) || gone.has(child)) delete conversation.chosen[parent];
  }
  conversation.removed = { ...conversation.removed, ...Object.fromEntries([...gone].map((of) => [of, now])) };
  conversation.updated = now;
  return removed;
}

/** Takes back a removal. @param {Conversation} conversation @param {Message[]} removed @param {number} now */
export function restore(conversation, removed, now) {
  const here = new Set(conversation.messages.map((message) => message.id));
  for (const message of removed) {
    if (!here.has(message.id)) conversation.messages.push({ ...message, changed: now });
  }
  if (removed.length > 0) choose(conversation, removed[0].id);
  conversation.updated = now;
}

/** From the first message to `id`. @param {Conversation} conversation @param {string | null} id @returns {Message[]} */
export function wayTo(conversation, id) {
  const way = [];
  for (let message = id && find(conversation, id); message; message = message.parent && find(conversation, message.parent)) {
    way.unshift(message);
  }
  return way;
}

/**
 * The messages that the engine answers: the system prompt and the way to `id`, without thoughts and without answers
 * that never came.
 * @param {Conversation} conversation @param {string | null} id @returns {any[]} in OpenAI's shape */
export function prompt(conversation, id) {
  const way = wayTo(conversation, id).filter(({ role, content, calls }) => role !== 'assistant' || content !== '' || calls);
  const system = conversation.system.trim() ? [{ role: 'system', content: conversation.system }] : [];
  const parts = (content, pictures) => (pictures
    ? [...pictures.map((url) => ({ type: 'image_url', image_url: { url } })), { type: 'text', text: content }] : content);
  return [...system, ...way.map(({ role, content, pictures, calls, call }) => ({
    role, content: parts(content, pictures), ...(call && { tool_call_id: call }),
    ...(calls && { tool_calls: calls.map(({ id: of, ...called }) => ({ id: of, type: 'function', function: called })) }),
  }))];
}
