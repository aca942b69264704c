// Elements in one call, and the page's icons. Text always goes in as text: nothing here parses HTML.
// Read next: main.mjs, which puts the page together.

const kSvg = 'http://www.w3.org/2000/svg';

/**
 * An element: h('button', { class: 'primary', onclick: send, 'aria-label': 'Send' }, 'Send'). A property that starts
 * with "on" is a listener, false, null and undefined leave an attribute out, true gives it without a value.
 * @param {string} tag @param {Record<string, any>} [properties] @param {...any} children
 * @returns {any}
 */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** @param {string} tag @param {Record<string, any>} [properties] @param {...any} children @returns {any} */
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(kSvg, tag), properties, children);
}

/** @param {any} element @param {Record<string, any>} properties @param {any[]} children */
function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked') element[name] = value;
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Outlines on a grid of 24 units.
const kIcons = {
  menu: 'M4 7h16M4 12h16M4 17h16',
  plus: 'M12 5v14M5 12h14',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  search: 'M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15.5 15.5L20 20',
  copy: 'M9 9h10v11H9zM15 9V4H5v11h4',
  edit: 'M4 20l1-4L16 5l3 3L8 19l-4 1z',
  again: 'M19 12a7 7 0 1 1-2.2-5.1M19 3v5h-5',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5',
  left: 'M14 6l-6 6 6 6',
  right: 'M10 6l6 6-6 6',
  down: 'M6 9l6 6 6-6',
  close: 'M6 6l12 12M18 6L6 18',
  sliders: 'M5 5v6M5 15v4M12 5v2M12 11v8M19 5v9M19 18v1M3 13h4M10 9h4M17 16h4',
  chat: 'M4 5h16v11H10l-4 4v-4H4z',
  model: 'M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9',
  gauge: 'M4 17a8 8 0 1 1 16 0M12 17l4-6',
  chip: 'M7 7h10v10H7zM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4',
  theme: 'M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  upload: 'M12 16V5M7 9l5-5 5 5M5 20h14',
  check: 'M5 12l5 5 9-10',
  picture: 'M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01',
};

/** @param {keyof typeof kIcons} name */
export function icon(name) {
  return svg('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' }, svg('path', { d: kIcons[name] }));
}

/** A button that shows only an icon; `label` is read aloud and shown as a hint.
 * @param {keyof typeof kIcons} name @param {string} label @param {(event: any) => void} onclick
 * @param {Record<string, any>} [more] */
export function iconButton(name, label, onclick, more = {}) {
  return h('button', { type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick, ...more }, icon(name));
}

/** Saves `text` as a file of the reader. @param {string} name @param {string} text @param {string} [type] */
export function saveFile(name, text, type = 'application/json') {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h('a', { href: address, download: name }).click();
  URL.revokeObjectURL(address);
}

/** Copies `text` and says so on the button for a moment. @param {any} button @param {string} text */
export async function copyText(button, text) {
  const kShownMs = 1200;
  await navigator.clipboard.writeText(text);
  button.classList.add('done');
  setTimeout(() => button.classList.remove('done'), kShownMs);
}
