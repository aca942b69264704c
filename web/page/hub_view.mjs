// Search of Hugging Face: each find with its size, its memory and whether it fits.
import { memoryEstimate } from './catalogue.mjs';
import { h } from './dom.mjs';
import { fit } from './fits.mjs';
import { bytesText } from './format.mjs';
import { entryOf, search } from './hub_search.mjs';
import { sentence } from './model_host.mjs';

/** @param {any} app */
export function hubView({ settings, load }) {
  const field = h('input', { id: 'hub-words', type: 'search', dir: 'auto', placeholder: 'qwen3, gemma, code …', autocomplete: 'off' });
  const state = h('p', { class: 'facts', role: 'status' });
  const list = h('ul', { class: 'models finds' });
  /** @type {AbortController | null} */ let under = null;

  const submit = async (event) => {
    event.preventDefault();
    under?.abort();
    const { signal } = (under = new AbortController());
    list.replaceChildren();
    state.textContent = 'Asking huggingface.co …';
    try {
      const found = await search(field.value.trim(), signal);
      state.textContent = found.length === 0 ? 'Nothing was found.' : `${found.length} found, the most downloaded first.`;
      list.replaceChildren(...found.map((one) => find(one, signal)));
    } catch (error) {
      if (!signal.aborted) state.textContent = sentence(error);
    }
  };
  /** @param {import('./hub_search.mjs').Found} found @param {AbortSignal} signal */
  const find = ({ repo, downloads }, signal) => {
    const facts = h('p', { class: 'facts' }, 'asking for its size …');
    const failed = h('p', { class: 'error', role: 'alert', hidden: true });
    const button = h('button', { type: 'button', disabled: true, 'aria-label': `Load ${repo}` }, 'Load');
    entryOf(repo, signal).then((entry) => {
      if (!entry) {
        facts.textContent = 'It has no GGUF file in one part.';
        return;
      }
      const memory = memoryEstimate(entry, settings.values);
      const { mark, text } = fit(memory);
      facts.replaceChildren(`${entry.name} · ${bytesText(entry.bytes ?? 0)} file · ≈ ${bytesText(memory ?? 0)} on the GPU `,
        text ? h('span', { class: `mark ${mark}` }, text) : '');
      button.disabled = false;
      button.addEventListener('click', async () => {
        failed.hidden = true;
        failed.textContent = await load(entry);
        failed.hidden = failed.textContent === '';
      });
    }, (error) => {
      if (!signal.aborted) facts.textContent = sentence(error);
    });
    return h('li', { class: 'model' },
      h('div', { class: 'model-text' }, h('div', { class: 'model-name' }, repo, h('span', { class: 'mark' }, `${downloads.toLocaleString('en-US')} downloads`)), facts, failed),
      h('div', { class: 'model-buttons' }, button));
  };
  return h('section', { class: 'sources', 'aria-label': 'Search of Hugging Face' },
    h('h2', {}, 'Find a model'),
    h('form', { class: 'source-form', onsubmit: submit },
      h('label', { class: 'field', for: 'hub-words' }, 'Words; huggingface.co is asked'),
      h('div', { class: 'source-line' }, field, h('button', {}, 'Search'))), state, list);
}
