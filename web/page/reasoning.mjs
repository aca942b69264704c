// Thoughts that a model writes between marks before its answer, told from the answer while both still stream. No DOM.

// Marks of published chat formats.
const kMarks = [
  { open: '<think>', close: '</think>' },       // DeepSeek R1, Qwen 3
  { open: '<thinking>', close: '</thinking>' }, // Granite and fine-tunes
  { open: '[THINK]', close: '[/THINK]' },       // Magistral
];

/**
 * Parts of a text that may still grow. Thoughts count only at its beginning: a mark in the middle of an answer is text.
 * @param {string} text
 * @returns {{reasoning: string, content: string, isThinking: boolean}}
 */
export function split(text) {
  const start = text.trimStart();
  for (const { open, close } of kMarks) {
    // A mark that has come in part is not shown yet.
    if (start.length < open.length && start !== '' && open.startsWith(start)) {
      return { reasoning: '', content: '', isThinking: true };
    }
    if (start.startsWith(open)) {
      const end = start.indexOf(close, open.length);
      if (end < 0) return { reasoning: start.slice(open.length).trim(), content: '', isThinking: true };
      return { reasoning: start.slice(open.length, end).trim(), content: start.slice(end + close.length).trimStart(), isThinking: false };
    }
    // Some templates write the opening mark into the prompt: the text begins inside, and the closing mark has a line alone.
    const alone = new RegExp(`(^|\\n)\\s*${escaped(close)}\\s*(\\n|$)`).exec(start);
    if (alone && !start.slice(0, alone.index).includes(open)) {
      const rest = start.slice(alone.index + alone[0].length);
      return { reasoning: start.slice(0, alone.index).trim(), content: rest.trimStart(), isThinking: false };
    }
  }
  return { reasoning: '', content: text, isThinking: false };
}

/** @param {string} text */
function escaped(text) {
  return text.replace(/[[\]\/]/g, '\\$&');
}
