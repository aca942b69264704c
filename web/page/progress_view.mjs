// The progress of a load: phase, bar, bytes, rate, time left, and a way to end it. Used wherever a model loads.
import { h } from './dom.mjs';
import { detailText, kPhases } from './figures.mjs';

/** @param {import('./model_host.mjs').ModelHost} host @returns {HTMLElement} kept up to date by itself */
export function progressView(host) {
  const name = h('span', { class: 'progress-name' });
  const phase = h('span', { class: 'progress-phase' });
  const bar = h('progress', { max: 1, 'aria-label': 'Loading' });
  const detail = h('span', { class: 'progress-detail' });
  const cancel = h('button', { type: 'button', class: 'plain', onclick: () => host.cancel() }, 'Cancel');
  const box = h('div', { class: 'progress', hidden: true },
    h('div', { class: 'progress-line' }, name, phase, cancel), bar, detail);

  const show = () => {
    box.hidden = !host.loading;
    if (!host.loading) return;
    const now = host.progress;
    name.textContent = host.loading.name;
    phase.textContent = now ? kPhases[now.phase] : 'Starting the engine';
    if (now && now.total > 0) bar.value = now.bytes / now.total;
    else bar.removeAttribute('value');
    detail.textContent = now ? detailText(now) : '';
  };
  host.addEventListener('change', show);
  show();
  return box;
}
