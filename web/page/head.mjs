// The head of the page, its tabs, and the drawer of conversations on narrow screens.
import { h, icon, iconButton } from './dom.mjs';
import { notice } from './notices.mjs';

export const kTabs = [
  { name: 'chat', label: 'Chat', icon: 'chat' },
  { name: 'models', label: 'Models', icon: 'model' },
  { name: 'bench', label: 'Bench', icon: 'gauge' },
  { name: 'device', label: 'Device', icon: 'chip' },
];
export const kThemes = ['auto', 'light', 'dark'];

const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {any} app @param {{toggleFinder: () => void, pickModel: () => void}} does */
export function headView({ host, settings }, does) {
  const chip = h('button', { type: 'button', class: 'model-chip', 'aria-haspopup': 'dialog', onclick: does.pickModel },
    h('span', { class: 'dot' }), h('span', { class: 'model-chip-name' }), icon('down'));
  const showChip = () => {
    chip.dataset.state = host.state;
    const words = { none: 'No model', loading: `Loading ${host.loading?.name}`, ready: host.name, failed: 'Not loaded', recovering: `${host.name} starts again` };
    chip.querySelector('.model-chip-name').textContent = words[host.state];
    chip.setAttribute('aria-label', `Model: ${words[host.state]}`);
  };
  const setTheme = (theme) => {
    settings.set({ theme });
    showTheme();
  };
  const showTheme = () => {
    const { theme } = settings.values;
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  };
  const nextTheme = () => {
    const theme = kThemes[(kThemes.indexOf(settings.values.theme) + 1) % kThemes.length];
    setTheme(theme);
    notice(`Theme: ${theme === 'auto' ? "the system's" : theme}.`);
  };
  const drawer = iconButton('menu', 'Conversations', () => toggleDrawer(), { class: 'icon-button menu', 'aria-expanded': 'false', 'aria-controls': 'sidebar' });
  const isOpen = () => document.body.classList.contains('drawer');
  const toggleDrawer = (open = !isOpen()) => {
    if (open === isOpen()) return;
    document.body.classList.toggle('drawer', open);
    drawer.setAttribute('aria-expanded', String(open));
    byId('veil').hidden = !open;
    if (open) byId('sidebar').querySelector('button')?.focus();
    else drawer.focus();
  };
  byId('veil').addEventListener('click', () => toggleDrawer(false));
  byId('top').replaceChildren(drawer, chip, h('span', { class: 'gap' }),
    iconButton('search', 'Find (Ctrl+K)', does.toggleFinder), iconButton('theme', 'Change the theme', nextTheme));
  byId('tabs').replaceChildren(...kTabs.map((tab) =>
    h('a', { href: `#/${tab.name}`, 'data-tab': tab.name }, icon(/** @type {any} */ (tab.icon)), h('span', {}, tab.label))));
  host.addEventListener('change', showChip);
  settings.addEventListener('change', showTheme);
  showChip();
  showTheme();
  return {
    setTheme,
    toggleDrawer,
    isDrawerOpen: isOpen,
    /** @param {string} name of the tab that is shown */
    mark(name) {
      for (const link of byId('tabs').querySelectorAll('a')) {
        if (link.dataset.tab === name) link.setAttribute('aria-current', 'page');
        else link.removeAttribute('aria-current');
      }
    },
  };
}
