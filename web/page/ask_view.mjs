// A question in a dialog, with two answers. The browser gives the focus back when it closes.
import { h } from './dom.mjs';

/** @param {{title: string, text: string, yes: string, no?: string}} question @returns {Promise<boolean>} */
export function ask({ title, text, yes, no = 'Cancel' }) {
  return new Promise((resolve) => {
    const dialog = h('dialog', { class: 'question', 'aria-labelledby': 'question-title' },
      h('h2', { id: 'question-title' }, title), h('p', {}, text),
      h('div', { class: 'button-line' },
        h('button', { type: 'button', onclick: () => dialog.close('') }, no),
        h('button', { type: 'button', class: 'primary', autofocus: true, onclick: () => dialog.close('yes') }, yes)));
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
