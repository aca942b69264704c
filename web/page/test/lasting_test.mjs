// Nothing lost, nothing stuck: the page by real clicks and keys on the fake engine, where something fails or two tabs
// write.
//   DOPPLER_SITE   the built page (web/page/build.mjs); default: web/dist
// Exit status 77: there is no Chromium.
import assert from 'node:assert/strict';
import { check } from './counted.mjs';
import { ask, count, openBrowser, textOf } from './opened.mjs';

const { newContext, openTab, open } = await openBrowser();
const focused = (page) => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.id ?? '');

check('two tabs that write into one conversation: nothing is lost, and each shows what the other wrote', async () => {
  const one = await open();
  await ask(one, 'a fox');
  const two = await openTab(one.context(), new URL(one.url()).hash);
  await two.locator('.message.assistant .figures').waitFor();
  await ask(one, 'from the first');
  await two.locator('.said').filter({ hasText: 'from the first' }).waitFor();
  await Promise.all([ask(one, 'first again'), ask(two, 'second table')]);
  await one.reload();
  await one.locator('.message').first().waitFor();
  const [kept] = await one.evaluate(() => new Promise((resolve) => {
    const opening = indexedDB.open('doppler-page');
    opening.onsuccess = () => (opening.result.transaction('conversations').objectStore('conversations').getAll().onsuccess = (event) => resolve(event.target.result));
  }));
  assert.deepEqual(kept.messages.filter(({ role }) => role === 'user').map(({ content }) => content).sort(),
    ['a fox', 'first again', 'from the first', 'second table']);
  assert.equal(kept.messages.filter(({ role, stop }) => role === 'assistant' && stop === 'stop').length, 4);
  await one.context().close();
});

check('two tabs that change settings: both changes stay', async () => {
  const one = await open();
  const two = await openTab(one.context());
  for (const tab of [one, two]) await tab.getByRole('button', { name: 'Sampler and system prompt' }).click();
  await one.locator('#sampler-temperature').fill('0.3');
  await one.locator('#sampler-temperature').press('Tab');
  await two.locator('#seed').fill('7');
  await two.locator('#seed').press('Tab');
  const kept = await one.evaluate(() => JSON.parse(localStorage.getItem('doppler-settings') ?? '{}'));
  assert.deepEqual([kept.sampler.temperature, String(kept.seed)], [0.3, '7']);
  await one.context().close();
});

check('where site data is blocked the page works from memory, and says so', async () => {
  const context = await newContext();
  await context.addInitScript(() => {
    for (const name of ['localStorage', 'indexedDB', 'sessionStorage', 'caches']) {
      Object.defineProperty(window, name, { get() { throw new DOMException('Access is denied for this document.', 'SecurityError'); } });
    }
  });
  const page = await openTab(context);
  await page.getByText('This browser keeps nothing for this page').waitFor();
  await ask(page, 'a fox');
  assert.equal(await textOf(page, '.conversation a'), 'a fox');
  await context.close();
});

check('without the list of models the page works, and says why it is empty', async () => {
  const context = await newContext();
  await context.route('**/models.json', (route) => route.fulfill({ status: 404 }));
  const page = await openTab(context);
  await page.getByText('The list of models (models.json) could not be read: the server answered 404.').waitFor();
  await page.fill('#composer-text', 'hello');
  await page.keyboard.press('Enter');
  await page.getByText('No model is known.').waitFor();
  await page.getByRole('link', { name: 'Models', exact: true }).click();
  await page.getByLabel('Model files').setInputFiles({ name: 'picked.gguf', mimeType: '', buffer: Buffer.from('GGUF') });
  await page.locator('[data-state="ready"]').filter({ hasText: 'picked' }).waitFor();
  await context.close();
});

check('a page that cannot start says why', async () => {
  const context = await newContext();
  await context.route('**/page/main.mjs', (route) => route.fulfill({ status: 500 }));
  const page = await openTab(context);
  await page.getByText(/The page could not start: .*main\.mjs could not be loaded\./).waitFor();
  await context.close();
});

check('an error that nothing caught is shown', async () => {
  const page = await open();
  await page.evaluate(() => void Promise.reject(new Error('Nobody waited for this')));
  await page.getByText('Something went wrong: Nobody waited for this.').waitFor();
  await page.context().close();
});

check('an answer that cannot be written to the disk ends as any other, is shown, and is exported', async () => {
  const page = await open();
  await page.evaluate(() => {
    IDBObjectStore.prototype.put = () => {
      throw new DOMException('The disk is full.', 'QuotaExceededError');
    };
  });
  await ask(page, 'a fox');
  assert.equal(await count(page, '.message.waiting'), 0);
  await page.getByText(/The browser could not keep the conversation/).waitFor();
  assert.equal(await textOf(page, '.conversation a'), 'a fox');
  await page.context().close();
});

check('a mistyped address, a dropped picture and a model that fails leave the loaded model, and stand where they were given', async () => {
  const page = await open();
  await page.getByRole('link', { name: 'Models', exact: true }).click();
  for (const [source, why] of [['https://example.org/missing.gguf', '404'], ['https://example.org/broken.gguf', 'is not known']]) {
    await page.fill('#source', source);
    await page.keyboard.press('Enter');
    await page.locator('#source-error').filter({ hasText: why }).waitFor();
    assert.match(await textOf(page, '.model-chip'), /Storyteller/);
    const name = source.split('/').at(-1).replace('.gguf', '');
    assert.equal(await page.locator('.model').filter({ hasText: name }).count(), 0); // off the list
  }
  await page.evaluate(() => {
    const data = new DataTransfer();
    data.items.add(new File(['\x89PNG'], 'cat.png'));
    document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
  });
  await page.getByText('"cat.png" is no model').waitFor();
  await page.getByRole('link', { name: 'Chat', exact: true }).click();
  await ask(page, 'a fox');
  await page.context().close();
});

check('a deleted conversation and a deleted message come back', async () => {
  const page = await open();
  await ask(page, 'a fox');
  await ask(page, 'a table');
  await page.locator('.message.user').last().hover();
  await page.locator('.message.user').last().getByRole('button', { name: 'Delete from here' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.message').length === 2);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.locator('.said').filter({ hasText: 'a table' }).waitFor();
  await page.locator('.conversation').hover();
  await page.getByRole('button', { name: 'Delete a fox' }).click();
  await page.getByText('No conversations yet.').waitFor();
  assert.equal(await count(page, '.message'), 0);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.locator('.said').filter({ hasText: 'a table' }).waitFor();
  await page.reload();
  await page.locator('.said').filter({ hasText: 'a table' }).waitFor();
  await page.context().close();
});

check('a conversation is renamed', async () => {
  const page = await open();
  await ask(page, 'a fox');
  await page.locator('.conversation').hover();
  await page.getByRole('button', { name: 'Rename a fox' }).click();
  await page.getByLabel('Title of the conversation').fill('Of foxes');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Of foxes' }).waitFor();
  await page.waitForFunction(() => document.activeElement?.getAttribute('aria-label') === 'Rename Of foxes');
  await page.reload();
  await page.getByRole('link', { name: 'Of foxes' }).waitFor();
  assert.match(await page.title(), /^Of foxes/);
  await page.context().close();
});

check('a draft survives a reload, each conversation its own', async () => {
  const page = await open();
  await ask(page, 'a fox');
  await page.fill('#composer-text', 'half a thou');
  await page.getByRole('button', { name: 'New chat' }).click();
  assert.equal(await page.inputValue('#composer-text'), '');
  await page.fill('#composer-text', 'another one');
  await page.reload();
  await page.waitForFunction(() => document.querySelector('#composer-text')?.value === 'another one');
  await page.getByRole('link', { name: 'a fox' }).click();
  await page.waitForFunction(() => document.querySelector('#composer-text')?.value === 'half a thou');
  await page.context().close();
});

check('a new chat does not stop the answer of another one', async () => {
  const page = await open();
  await page.fill('#composer-text', 'a long one');
  await page.keyboard.press('Enter');
  await page.getByText('Sentence number 3').waitFor();
  await page.getByRole('button', { name: 'New chat' }).click();
  assert.equal(await count(page, '.message'), 0);
  assert.equal(await page.getByLabel('is being answered').count(), 1);
  await ask(page, 'a fox');
  await page.getByRole('link', { name: 'a long one' }).click();
  await page.locator('.message.assistant .figures').waitFor({ timeout: 60000 });
  assert.match(await textOf(page, '.message.assistant .markdown'), /number 120/);
  await page.context().close();
});

check('Esc closes the settings, not the answer; the focus comes back to where it was', async () => {
  const page = await open();
  await page.fill('#composer-text', 'a long one');
  await page.keyboard.press('Enter');
  await page.getByText('Sentence number 3').waitFor();
  await page.getByRole('button', { name: 'Sampler and system prompt' }).click();
  assert.equal(await focused(page), 'Close settings');
  await page.keyboard.press('Escape');
  await page.locator('#sampler').waitFor({ state: 'hidden' });
  assert.equal(await focused(page), 'Sampler and system prompt');
  await page.locator('.message.assistant .figures').waitFor({ timeout: 60000 });
  assert.equal(await count(page, '.stop-note'), 0);
  await page.click('#composer-text');
  await page.keyboard.press('Control+k');
  await page.keyboard.press('Escape');
  assert.equal(await focused(page), 'Message');
  await page.locator('.conversation').hover();
  await page.getByRole('button', { name: 'Delete a long one' }).click();
  await page.getByText('No conversations yet.').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'New chat');
  await page.context().close();
});
