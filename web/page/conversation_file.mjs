// Conversations as one JSON file, out of the browser and back. A file's text is foreign. No DOM.

const kFormat = 'doppler-conversations';
const kVersion = 1;

/** @typedef {import('./tree.mjs').Conversation} Conversation */

/** @param {Conversation[]} conversations @returns {string} a JSON file that parseExport takes */
export function exportText(conversations) {
  const whole = conversations.map(({ removed, ...conversation }) => conversation);
  return JSON.stringify({ format: kFormat, version: kVersion, conversations: whole }, null, 1);
}

/**
 * The conversations of an exported file; throws a sentence if the text is no such file.
 * @param {string} text @returns {Conversation[]}
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
const isPicture = (value) => isText(value) && /^data:image\/(png|jpeg|webp|gif|bmp|avif);base64,[\w+/=]+$/.test(value);
const isTime = (value) => Number.isFinite(value) && value >= 0;

/**
 * Only known fields with right types go in: what is shown later may rely on them.
 * @param {any} from @param {number} index
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
    if (isTime(message.changed)) kept.changed = message.changed;
    for (const name of ['reasoning', 'model', 'stop', 'error', 'call']) if (isText(message[name])) kept[name] = message[name];
    const areCalls = Array.isArray(message.calls) && message.calls.every((call) => isText(call?.id) && isText(call.name) && isText(call.arguments));
    if (areCalls) kept.calls = message.calls.map(({ id: of, name, arguments: text }) => ({ id: of, name, arguments: text }));
    if (typeof message.figures === 'object' && message.figures) kept.figures = message.figures;
    if (Array.isArray(message.pictures) && message.pictures.every(isPicture)) kept.pictures = [...message.pictures];
    return kept;
  });
  const chosen = {};
  for (const [parent, child] of Object.entries(from.chosen ?? {})) if (isText(child) && seen.has(child)) chosen[parent] = child;
  const { id, title, created, updated } = from;
  return { id, title, created, updated, system: isText(from.system) ? from.system : '', messages, chosen };
}
