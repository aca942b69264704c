// Loading by address, by name, and from files by picker or drop. An error stands beside the field.
import { nameOf, parseSource } from './catalogue.mjs';
import { h, icon } from './dom.mjs';
import { sentence } from './model_host.mjs';
import { whatIsWrong } from './model_files.mjs';
import { notice } from './notices.mjs';
import { picturesOf } from './pictures_field.mjs';

/** @param {any} app */
export function sourceForm({ host, settings, load }) {
  const wrong = h('p', { class: 'error', id: 'source-error', role: 'alert', hidden: true });
  const show = (text) => {
    wrong.textContent = text;
    wrong.hidden = text === '';
  };
  const field = h('input', { id: 'source', type: 'text', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off',
    placeholder: 'https://…/model.gguf or owner/name:Q4_K_M', 'aria-describedby': 'source-error' });
  const submit = async (event) => {
    event.preventDefault();
    show('');
    try {
      const source = parseSource(field.value);
      const error = await load({ source, name: nameOf(source), added: true });
      show(error);
      if (!error) field.value = '';
    } catch (error) {
      show(sentence(error));
    }
  };
  const picker = h('input', { type: 'file', multiple: true, class: 'only-read', 'aria-label': 'Model files', tabindex: '-1',
    onchange: async () => {
      show('');
      const files = [...picker.files];
      picker.value = '';
      show(await loadFiles(files, host, settings));
    } });
  const pick = h('button', { type: 'button', onclick: () => picker.click() }, icon('upload'), 'Choose a file');
  return h('div', { class: 'sources' },
    h('h2', {}, 'Load another model'),
    h('form', { class: 'source-form', onsubmit: submit },
      h('label', { class: 'field', for: 'source' }, 'Address or Hugging Face name'),
      h('div', { class: 'source-line' }, field, h('button', { class: 'primary' }, 'Load')), wrong),
    h('div', { class: 'drop-hint' }, pick, picker, h('span', {}, 'or drop a .gguf file, or the files of a model folder, anywhere on the page. It is read where it lies.')));
}

/**
 * @param {File[]} files @param {any} host @param {any} settings
 * @returns {Promise<string>} why they were not loaded, or empty
 */
async function loadFiles(files, host, settings) {
  if (files.length === 0) return '';
  const wrong = await whatIsWrong(files);
  if (wrong) return wrong;
  const isOne = files.length === 1;
  return host.load(isOne ? files[0] : files, nameOf(isOne ? files[0].name : 'model folder'), settings.loading(),
    files.reduce((sum, file) => sum + file.size, 0));
}

/**
 * Files dropped anywhere are loaded, and pictures go with the next message.
 * @param {any} app @param {() => void} shown called when a load begins @param {(files: File[]) => void} takePictures
 */
export function takeDrops({ host, settings }, shown, takePictures) {
  const mark = (isOver) => document.body.classList.toggle('dropping', isOver);
  const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
  addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(true);
  });
  addEventListener('dragleave', (event) => {
    if (!event.relatedTarget) mark(false);
  });
  addEventListener('drop', async (event) => {
    mark(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.some((file) => file.name.endsWith('.json')) && files.length === 1) return; // an export: sidebar.mjs
    const pictures = picturesOf(event.dataTransfer);
    if (pictures.length > 0 && pictures.length === files.length) return takePictures(pictures);
    const wrong = await whatIsWrong(files);
    if (wrong) return void notice(wrong, { kind: 'error' });
    shown();
    const error = await loadFiles(files, host, settings);
    if (error) notice(error, { kind: 'error' });
  });
}
