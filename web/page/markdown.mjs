// Markdown that may still grow, as elements: GitHub's dialect with maths. A model's text is foreign: raw HTML is shown
// as text, Markdown's output is sanitised, pictures become links, so that a text fetches no resource. Code is coloured
// and maths is set after that, each by a library that is loaded when it is first needed.
import { Marked } from '../vendor/marked.mjs';
import DOMPurify from '../vendor/purify.mjs';
import { copyText, h, icon } from './dom.mjs';

// TeX that expands for ever ends here; KaTeX's own default.
const kMostTexExpansions = 1000;
// Longer code is shown plain: colouring blocks the page.
const kMostColouredCharacters = 50000;

const kAllowed = {
  ALLOWED_TAGS: ['p', 'br', 'hr', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'strong', 'em', 'del', 'blockquote', 'ul', 'ol', 'li', 'input',
    'pre', 'code', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'a', 'span', 'div'],
  ALLOWED_ATTR: ['href', 'title', 'class', 'align', 'start', 'type', 'checked', 'disabled'],
  ADD_URI_SAFE_ATTR: ['align', 'start', 'type', 'checked', 'disabled'], // no addresses: the next line is not for them
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_DATA_ATTR: false,
};

/** @param {string} text */
function escaped(text) {
  return text.replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]);
}

/**
 * @param {string} name
 * @param {"block" | "inline"} level
 * @param {RegExp} start where maths may begin
 * @param {RegExp} whole
 */
function mathsRule(name, level, start, whole) {
  return {
    name,
    level,
    start: (text) => text.match(start)?.index,
    tokenizer(text) {
      const match = whole.exec(text);
      return match ? { type: name, raw: match[0], text: (match[1] ?? match[2]).trim(), display: level === 'block' } : undefined;
    },
    renderer({ text, display }) {
      return display ? `<div class="maths">${escaped(text)}</div>` : `<span class="maths">${escaped(text)}</span>`;
    },
  };
}

const marked = new Marked({ gfm: true, breaks: true });
marked.use({
  extensions: [
    mathsRule('mathsBlock', 'block', /\$\$|\\\[/, /^(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])(?:\n|$)/),
    // "$5 and $6" is money: a dollar opens before a sign that is no space, and closes after one and before no digit.
    mathsRule('mathsInline', 'inline', /\$|\\\(/, /^(?:\$((?=\S)(?:\\.|[^\\$\n])*?(?:\\.|[^\\$\s]))\$(?!\d)|\\\(([\s\S]+?)\\\))/),
  ],
  renderer: {
    html: ({ text }) => escaped(text),
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
  },
});

DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return;
  node.setAttribute('target', '_blank');
  node.setAttribute('rel', 'noopener noreferrer');
});

/** The elements of one block of Markdown. @param {any} token of the lexer */
function elementsOf(token) {
  const fragment = DOMPurify.sanitize(marked.parser([token]), { ...kAllowed, RETURN_DOM_FRAGMENT: true });
  const box = h('div', { class: 'block', dir: 'auto' });
  box.append(fragment);
  for (const table of box.querySelectorAll('table')) {
    const frame = h('div', { class: 'table-frame', tabindex: '0', role: 'region', 'aria-label': 'Table' });
    table.replaceWith(frame);
    frame.append(table);
  }
  for (const code of box.querySelectorAll('pre > code')) frameCode(code);
  return box;
}

/** A head with language and copy button around a block of code. @param {HTMLElement} code */
function frameCode(code) {
  const language = /language-([\w+#-]+)/.exec(code.className)?.[1] ?? '';
  const copy = h('button', { type: 'button', class: 'copy-code', onclick: () => copyText(copy, code.textContent ?? '') }, icon('copy'), 'Copy');
  const pre = /** @type {HTMLElement} */ (code.parentElement);
  pre.setAttribute('tabindex', '0');
  pre.replaceWith(h('div', { class: 'code' }, h('div', { class: 'code-head' }, h('span', {}, language || 'text'), copy), pre.cloneNode(false)));
  const frame = copy.closest('.code');
  frame.querySelector('pre').append(code);
}

/** Colours and sets what a finished block holds. @param {HTMLElement} box */
async function finish(box) {
  const codes = [...box.querySelectorAll('pre > code')].filter((code) => (code.textContent ?? '').length <= kMostColouredCharacters);
  if (codes.some((code) => /language-/.test(code.className))) {
    const { default: highlight } = await import('../vendor/highlight.mjs');
    for (const code of codes) {
      const language = /language-([\w+#-]+)/.exec(code.className)?.[1];
      if (!language || !highlight.getLanguage(language)) continue;
      const coloured = highlight.highlight(code.textContent ?? '', { language, ignoreIllegals: true }).value;
      code.replaceChildren(DOMPurify.sanitize(coloured, { ...kAllowed, RETURN_DOM_FRAGMENT: true }));
    }
  }
  const formulas = [...box.querySelectorAll('.maths')];
  if (formulas.length === 0) return;
  addStyle('vendor/katex.min.css');
  const { default: katex } = await import('../vendor/katex.mjs');
  for (const place of formulas) {
    katex.render(place.textContent ?? '', place, {
      displayMode: place.tagName === 'DIV', throwOnError: false, trust: false, maxExpand: kMostTexExpansions,
    });
  }
}

/** @param {string} address beside the page */
function addStyle(address) {
  if (!document.querySelector(`link[href="${address}"]`)) document.head.append(h('link', { rel: 'stylesheet', href: address }));
}

/** A text as elements; while it grows only its last blocks are made anew. */
export class MarkdownView {
  element = h('div', { class: 'markdown' });
  /** @type {string[]} */ #raws = [];

  /** @param {string} text @param {boolean} isWhole no more of it comes */
  update(text, isWhole) {
    const tokens = marked.lexer(text).filter((token) => token.type !== 'space');
    const raws = tokens.map((token) => token.raw);
    let same = 0;
    while (same < raws.length && raws[same] === this.#raws[same]) same++;
    while (this.element.children.length > same) this.element.lastChild?.remove();
    for (let i = same; i < tokens.length; ++i) this.element.append(elementsOf(tokens[i]));
    this.#raws = raws;
    const finished = isWhole ? tokens.length : tokens.length - 1;
    for (let i = 0; i < finished; ++i) {
      const box = this.element.children[i];
      if (box.dataset.finished) continue;
      box.dataset.finished = '1';
      finish(box);
    }
  }
}
