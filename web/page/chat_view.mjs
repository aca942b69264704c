// The chat: messages, the field to write in, and the panel of settings beside them. Draws what chat.mjs holds.
import { composerView } from './composer.mjs';
import { h, iconButton } from './dom.mjs';
import { MessageView } from './message_view.mjs';
import { progressView } from './progress_view.mjs';
import { samplerView } from './sampler_view.mjs';
import { siblings } from './tree.mjs';

// Nearer to the end than this, the view follows a growing answer.
const kFollowPixels = 80;
// First questions for models that have none in the list.
const kStarters = ['Explain how a rainbow forms', 'Write a short poem about rain', 'Plan a quiet weekend in Rome'];

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
  panel.element.addEventListener('toggle-panel', () => {
    tune.setAttribute('aria-expanded', String(panel.isOpen()));
    if (!panel.isOpen()) tune.focus();
  });
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

  const redraw = (isOwn) => {
    const shown = chat.shown;
    views = shown.map((message) => {
      const old = views.find((view) => view.message === message && view.element.dataset.key === keyOf(message));
      if (old) return old;
      const view = new MessageView(chat, message, siblings(chat.conversation, message.id));
      view.element.dataset.key = keyOf(message);
      return view;
    });
    list.replaceChildren(...(shown.length === 0 ? [beginning(app)]
      : [h('h1', { class: 'only-read' }, chat.conversation.title || 'Chat'), ...views.map((view) => view.element)]));
    scroller.classList.toggle('empty', shown.length === 0);
    if (isOwn) delete toEnd.dataset.away;
    follow(isOwn);
  };
  // A view is drawn anew when something of its foot may have changed.
  const keyOf = (message) =>
    [message.content.length, message.reasoning?.length, chat.growing === message, message.stop, message.error, siblings(chat.conversation, message.id).length,
      message.calls && chat.shown.at(-1) === message].join('|');

  chat.addEventListener('change', () => redraw(true));
  chat.addEventListener('merged', () => redraw(false));
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
  redraw(true);
  // A field that grows takes from the height of the messages: their end stays in sight.
  new ResizeObserver(() => follow(false)).observe(scroller);
  const column = h('div', { class: 'chat-column' }, scroller, toEnd, h('div', { class: 'bottom' }, progressView(host), composer.element), said);
  return { element: h('section', { class: 'chat', 'aria-label': 'Chat' }, column, panel.element), focus: () => composer.focus(), takePictures: composer.takePictures, panel };
}

/** Fills the place of the messages before the first one. @param {any} app */
function beginning({ chat, host, offered, usual }) {
  const note = h('p', { class: 'lead' });
  const show = () => {
    if (host.state === 'ready') note.textContent = `${host.name} runs on ${host.model.info.adapter}. Nothing you write leaves this browser.`;
    else if (host.state === 'failed') note.textContent = `${host.failure.name} did not load: ${host.error}`;
    else note.textContent = 'A language model in your browser, on your own GPU. Nothing you write leaves it.';
    note.classList.toggle('error', host.state === 'failed');
  };
  const suggestions = h('div', { class: 'suggestions' });
  const suggest = () => {
    const source = host.model ? host.source : (host.loading?.source ?? usual()?.source);
    const { starters = kStarters } = offered.find((entry) => entry.source === source) ?? {};
    if (starters.join() === [...suggestions.children].map((button) => button.textContent).join()) return;
    suggestions.replaceChildren(...starters.map((text) => h('button', { type: 'button', onclick: () => chat.send(text) }, text)));
  };
  host.addEventListener('change', () => {
    show();
    suggest();
  });
  show();
  suggest();
  return h('div', { class: 'beginning' }, h('h1', {}, 'What shall it be about?'), note, suggestions);
}
