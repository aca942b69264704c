// The options of loading: context, lane, cache of keys and values.
import { h } from './dom.mjs';

const kLanes = ['fast', 'exact', 'portable', 'subgroups', 'dp4a'];

/** @param {import('./settings.mjs').Settings} settings @param {() => void} changed */
export function loadOptionsView(settings, changed) {
  const set = (changes) => {
    settings.set(changes);
    changed();
  };
  const choice = (id, label, values, value, onchoose) => {
    const select = h('select', { id, onchange: () => onchoose(select.value) },
      values.map(([name, text]) => h('option', { value: name, selected: name === value }, text)));
    return h('div', { class: 'option' }, h('label', { for: id }, label), select);
  };
  const ctx = h('input', { id: 'ctx', type: 'number', min: 0, step: 256, placeholder: 'as trained, at most 4096',
    value: settings.values.ctx || '', onchange: () => set({ ctx: Math.max(0, Math.floor(Number(ctx.value) || 0)) }) });
  return h('details', { class: 'load-options' }, h('summary', {}, 'How models are loaded'),
    h('div', { class: 'options' },
      h('div', { class: 'option' }, h('label', { for: 'ctx' }, 'Context (tokens)'), ctx),
      choice('lane', 'Kernel lane', kLanes.map((lane) => [lane, lane]), settings.values.lane, (lane) => set({ lane })),
      choice('kv', 'Keys and values', [['f16', '16 bits'], ['f32', '32 bits']], settings.values.kv, (kv) => set({ kv }))),
    h('p', { class: 'facts' }, 'These hold from the next load on.'));
}
