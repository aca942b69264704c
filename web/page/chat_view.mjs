// The chat: messages, the field to write in, and the panel of settings beside them. Draws what chat.mjs holds.
import { h, icon, iconButton } from './dom.mjs';
import { MessageView } from './message_view.mjs';
import { progressView } from './progress_view.mjs';
import { samplerView } from './sampler_view.mjs';
import { siblings } from './tree.mjs';

// Nearer to the end than this, the view follows a growing answer.
const kFollowPixels = 80;
// The shipped model tells tales; others do well with these too.
const kBeginnings = ['The fox and the crow', 'The miller and his three daughters', 'A king who could not sleep'];

/**
 * @param {{chat: import('./chat.mjs').Chat, host: import('./model_host.mjs').ModelHost,
 *   settings: import('./settings.mjs').Settings}} app
 */
export function chatView(app) {
  const { chat, host, settings } = app;
  const list = h('div', { class: 'messages', role: 'log', 'aria-live': 'off', 'aria-label': 'Messages' });
  const scroller = h('div', { class: 'scroller', tabindex: '-1' }, list);
  const said = h('p', { class: 'only-read', role: 'status' });
  const toEnd = iconButton('down', 'To the end', () => follow(true), { class: 'icon-button to-end', hidden: true });
  const composer = composerView(app);
  const panel = samplerView(app);
  const tune = iconButton('sliders', 'Sampler and system prompt', () => panel.toggle(), { 'aria-expanded': 'false', 'aria-controls': 'sampler' });
  panel.element.addEventListener('toggle-panel', () => tune.setAttribute('aria-expanded', String(!panel.element.hidden)));
  composer.tools.prepend(tune);
  /** @type {MessageView[]} */ let views = [];
  let isDrawing = false;

  const isNearEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < kFollowPixels;
  const follow = (always) => {
    if (always || !toEnd.dataset.away) scroller.scrollTop = scroller.scrollHeight;
  };
  scroller.addEventListener('scroll', () => {
    const isAway = !isNearEnd();
    toEnd.hidden = !isAway;
    if (isAway) toEnd.dataset.away = '1';
    else delete toEnd.dataset.away;
  });

  const redraw = () => {
    const shown = chat.shown;
    views = shown.map((message) => {
      const old = views.find((view) => view.message === message && view.element.dataset.key === keyOf(message));
      if (old) return old;
      const view = new MessageView(chat, message, siblings(chat.conversation, message.id));
      view.element.dataset.key = keyOf(message);
      return view;
    });
    list.replaceChildren(...(shown.length === 0 ? [beginning(app)] : views.map((view) => view.element)));
    scroller.classList.toggle('empty', shown.length === 0);
    delete toEnd.dataset.away;
    follow(true);
  };
  // A view is drawn anew when something of its foot may have changed.
  const keyOf = (message) =>
    [message.content.length, chat.growing === message, message.stop, message.error, siblings(chat.conversation, message.id).length,
      message.calls && chat.shown.at(-1) === message].join('|');

  chat.addEventListener('change', redraw);
  chat.addEventListener('text', () => {
    if (isDrawing) return;
    isDrawing = true;
    requestAnimationFrame(() => {
      isDrawing = false;
      views.at(-1)?.update();
      follow(false);
    });
  });
  chat.addEventListener('end', () => {
    const last = chat.shown.at(-1);
    said.textContent = last?.error ? 'The answer failed.' : `The answer is there: ${last?.content ?? ''}`;
  });
  settings.addEventListener('change', () => composer.refresh());
  redraw();
  const column = h('div', { class: 'chat-column' }, scroller, toEnd, h('div', { class: 'bottom' }, progressView(host), composer.element), said);
  return { element: h('section', { class: 'chat', 'aria-label': 'Chat' }, column, panel.element), focus: () => composer.focus(), panel };
}

/** The view of a conversation without messages. @param {any} app */
function beginning({ chat, host }) {
  const note = h('p', { class: 'lead' });
  const show = () => {
    if (host.state === 'ready') note.textContent = `${host.name} runs on ${host.model.info.adapter}. Nothing you write leaves this browser.`;
    else if (host.state === 'failed') note.textContent = `${host.name} did not load: ${host.error}`;
    else note.textContent = 'A language model in your browser, on your own GPU. Nothing you write leaves it.';
    note.classList.toggle('error', host.state === 'failed');
  };
  host.addEventListener('change', show);
  show();
  return h('div', { class: 'beginning' }, h('h1', {}, 'What shall it be about?'), note,
    h('div', { class: 'suggestions' }, kBeginnings.map((text) => h('button', { type: 'button', onclick: () => chat.send(text) }, text))));
}

/** @param {any} app */
function composerView({ chat, host }) {
  const text = h('textarea', { id: 'composer-text', rows: 1, 'aria-label': 'Message', placeholder: 'Write a message', enterkeyhint: 'send' });
  const send = () => {
    if (chat.isAnswering || text.value.trim() === '') return;
    const written = text.value;
    text.value = '';
    grow();
    chat.send(written);
  };
  const button = h('button', { type: 'button', class: 'send', onclick: () => (chat.isAnswering ? chat.stop() : send()) });
  const tools = h('div', { class: 'composer-tools' });
  const grow = () => {
    text.style.height = 'auto';
    text.style.height = `${text.scrollHeight}px`;
    refresh();
  };
  const refresh = () => {
    const name = chat.isAnswering ? 'Stop' : 'Send';
    if (button.getAttribute('aria-label') !== name) {
      button.setAttribute('aria-label', name);
      button.title = chat.isAnswering ? 'Stop (Esc)' : 'Send (Enter)';
      button.replaceChildren(icon(chat.isAnswering ? 'stop' : 'send'));
    }
    button.disabled = !chat.isAnswering && text.value.trim() === '';
  };
  text.addEventListener('input', grow);
  text.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  chat.addEventListener('change', refresh);
  host.addEventListener('change', refresh);
  refresh();
  const element = h('div', { class: 'composer' }, text, h('div', { class: 'composer-row' }, tools, h('span', { class: 'hint' }, 'Enter sends, Shift+Enter breaks the line'), button));
  return { element, tools, refresh, focus: () => text.focus() };
}
