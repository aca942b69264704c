// The model picker of the head: the known models in a dialog, one click away from being loaded.
import { memoryEstimate, merged } from './catalogue.mjs';
import { h, iconButton } from './dom.mjs';
import { bytesText } from './format.mjs';
import { marks, stored } from './models_view.mjs';
import { progressView } from './progress_view.mjs';

/** @param {any} app */
export function pickerView(app) {
  const { host, settings } = app;
  const list = h('ul', { class: 'pick-list' });
  const failed = h('p', { class: 'error', role: 'alert', hidden: true });
  const dialog = h('dialog', { class: 'picker', 'aria-labelledby': 'picker-title' },
    h('div', { class: 'panel-head' }, h('h2', { id: 'picker-title' }, 'Choose a model'), iconButton('close', 'Close the list of models', () => dialog.close())),
    progressView(host), failed, list,
    h('a', { class: 'button-link', href: '#/models', onclick: () => dialog.close() }, 'Find more, load from a file, see what is stored'));
  document.body.append(dialog);
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });

  const refresh = async () => {
    const { models } = await stored(host);
    const entries = merged(app.offered, settings.values.added, models, location.href);
    const focused = list.contains(document.activeElement) ? /** @type {any} */ (document.activeElement).dataset.source : null;
    list.replaceChildren(...entries.map(row));
    if (focused) list.querySelector(`[data-source="${CSS.escape(focused)}"]`)?.focus();
  };
  /** @param {import('./catalogue.mjs').Entry} entry */
  const row = (entry) => {
    const isLoaded = host.model !== null && (host.source === entry.source || host.source === entry.cached?.id);
    const memory = memoryEstimate(entry, settings.values);
    const take = async () => {
      if (isLoaded) return dialog.close();
      failed.hidden = true;
      const error = await app.load(entry);
      failed.textContent = error;
      failed.hidden = error === '';
      if (!error && host.source === entry.source) dialog.close();
    };
    return h('li', {}, h('button', { type: 'button', 'data-source': entry.source, 'aria-current': isLoaded ? 'true' : false, onclick: take },
      h('span', { class: 'model-name' }, entry.name, marks(entry, isLoaded, memory)),
      h('small', {}, [entry.about ?? '', entry.bytes ? bytesText(entry.bytes) : ''].filter(Boolean).join(' '))));
  };
  host.addEventListener('change', () => {
    if (dialog.open && !host.progress) refresh();
  });
  return {
    open: async () => {
      failed.hidden = true;
      await refresh();
      if (dialog.open) return;
      dialog.showModal();
      (list.querySelector('[aria-current]') ?? list.querySelector('button'))?.focus();
    },
  };
}
