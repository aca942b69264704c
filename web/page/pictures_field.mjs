// Pictures that go with the next message: picked, pasted or dropped, shown small until they are sent. They are kept as
// data URLs, so that a conversation stays plain data.
import { h, icon } from './dom.mjs';
import { notice } from './notices.mjs';

const kMostBytes = 8 << 20; // of a file: a conversation is written often
const kMostPictures = 8;

/** @param {Blob} file @returns {Promise<string>} */
const dataUrl = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(String(reader.result));
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

/** Whether a drop or paste brings pictures, and what. @param {DataTransfer | null} data @returns {File[]} */
export const picturesOf = (data) => Array.from(data?.files ?? []).filter(({ type }) => type.startsWith('image/'));

/** @param {() => void} changed */
export function picturesField(changed) {
  /** @type {string[]} */ let pictures = [];
  const shown = h('ul', { class: 'pictures', 'aria-label': 'Pictures of the message', hidden: true });
  const input = h('input', { type: 'file', accept: 'image/*', multiple: true, class: 'only-read', tabindex: '-1', 'aria-label': 'Picture files', onchange: () => void take(Array.from(input.files)) });
  const button = h('button', { type: 'button', class: 'icon-button', 'aria-label': 'Add a picture', title: 'Add a picture', onclick: () => input.click() }, icon('picture'));
  const set = (next) => {
    pictures = next;
    shown.hidden = pictures.length === 0;
    shown.replaceChildren(...pictures.map((url, i) => h('li', {}, h('img', { src: url, alt: `Picture ${i + 1}` }),
      h('button', { type: 'button', class: 'icon-button', 'aria-label': `Remove picture ${i + 1}`, onclick: () => set(pictures.filter((_, other) => other !== i)) }, icon('close')))));
    changed();
  };
  /** @param {File[]} files */
  const take = async (files) => {
    input.value = '';
    for (const file of files) {
      if (file.size > kMostBytes) notice(`${file.name} has ${(file.size / 2 ** 20).toFixed(1)} MB; a picture may have ${kMostBytes >> 20} MB.`);
      else if (pictures.length >= kMostPictures) notice(`A message may have ${kMostPictures} pictures.`);
      else {
        const url = await dataUrl(file); // another one may come meanwhile
        set([...pictures, url]);
      }
    }
  };
  return { shown, button: [button, input], take, get value() { return pictures; }, clear: () => set([]) };
}
