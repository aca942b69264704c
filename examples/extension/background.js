// The extension's service worker loads a model at the first question, and explains the text that is selected on a page.
// The package lies beside it: `npm pack doppler-webgpu`, unpacked as the folder doppler. Read next: README.md.
import { Doppler } from './doppler/doppler.mjs';

const kModel = 'bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M';
/** @type {Promise<Doppler> | null} */ let loading = null;

/** One model at a time; a service worker has no worker of its own, so the engine runs here. */
globalThis.open = (source = kModel, options = {}) => (loading ??= Doppler.load(source, options).catch((error) => {
  loading = null;
  throw error;
}));

chrome.runtime.onInstalled.addListener(() => {
  chrome.contextMenus.create({ id: 'explain', title: 'Explain with Doppler', contexts: ['selection'] });
});

chrome.contextMenus.onClicked.addListener(async ({ selectionText = '' }, tab) => {
  const doppler = await globalThis.open();
  const { choices: [{ message }] } = await doppler.chat.completions.create({
    max_tokens: 200, messages: [{ role: 'user', content: `Explain in two sentences:\n${selectionText}` }],
  });
  await chrome.scripting.executeScript({ target: { tabId: tab.id }, func: (text) => alert(text), args: [message.content] });
});
