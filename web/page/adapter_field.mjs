// The adapter (LoRA) of the next answer: chosen by name among those that were added from files or by address.
import { nameOf, parseSource } from './catalogue.mjs';
import { h, icon, iconButton } from './dom.mjs';
import { adapterOf } from './model_files.mjs';
import { sentence } from './model_host.mjs';

/** @param {import('./model_host.mjs').ModelHost} host */
export function adapterField(host) {
  const note = h('small', { id: 'adapter-note', class: 'error', role: 'alert' });
  const choice = h('select', { id: 'adapter', onchange: () => host.chooseAdapter(choice.value) });
  const remove = iconButton('trash', 'Remove this adapter', () => {
    void host.removeAdapter(host.adapter);
    choice.focus();
  });
  const address = h('input', { id: 'adapter-source', type: 'text', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off',
    placeholder: 'https://…/adapter.gguf or owner/name', 'aria-describedby': 'adapter-note' });
  let isBusy = false;
  /**
   * @param {() => {name: string, source: any}} read throws a sentence
   * @returns {Promise<boolean>} whether it was added
   */
  const add = async (read) => {
    if (isBusy) return false;
    isBusy = true;
    note.textContent = '';
    try {
      const { name, source } = read();
      note.textContent = await host.addAdapter(name, source);
    } catch (error) {
      note.textContent = sentence(error);
    }
    isBusy = false;
    return note.textContent === '';
  };
  const picker = h('input', { type: 'file', multiple: true, accept: '.gguf,.json,.safetensors', class: 'only-read', tabindex: '-1', 'aria-label': 'Adapter files', onchange: () => {
    const files = [...picker.files];
    picker.value = '';
    if (files.length > 0) void add(() => adapterOf(files, host.adapters.map(({ name }) => name)));
  } });
  const submit = async (event) => {
    event.preventDefault();
    const added = await add(() => {
      const source = parseSource(address.value);
      return { name: nameOf(source), source };
    });
    if (added) address.value = '';
  };
  const show = () => {
    const names = host.adapters.map(({ name }) => name);
    const wanted = ['', ...names].join('\n');
    if (choice.dataset.names !== wanted) { // an open list does not change
      choice.dataset.names = wanted;
      choice.replaceChildren(h('option', { value: '' }, 'None'), ...names.map((name) => h('option', { value: name }, name)));
    }
    choice.value = host.adapter;
    remove.hidden = host.adapter === '';
  };
  host.addEventListener('change', show);
  show();
  return [
    h('label', { class: 'field', for: 'adapter' }, 'Of the next answer'), h('div', { class: 'source-line' }, choice, remove),
    h('form', { class: 'source-form', onsubmit: submit }, h('label', { class: 'field', for: 'adapter-source' }, 'Add by address or name'),
      h('div', { class: 'source-line' }, address, h('button', {}, 'Add'))),
    h('div', { class: 'drop-hint' }, h('button', { type: 'button', onclick: () => picker.click() }, icon('upload'), 'Add files'), picker, h('span', {}, '.gguf, or both files of a PEFT folder')),
    note,
  ];
}
