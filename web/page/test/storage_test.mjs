// The page's storage by real clicks, on the package's own downloads and a fake core: fetches, storage,
// sentences, times without a network.
//   DOPPLER_SITE   the built page (web/page/build.mjs); default: web/dist
// Exit status 77: there is no Chromium.
import assert from 'node:assert/strict';
import { check } from './counted.mjs';
import { ask, openBrowser, textOf } from './opened.mjs';

const { server, newContext, openTab, open } = await openBrowser();

check('the page is an app that can be installed, and opens without a network', async () => {
  const page = await open();
  const { name, icons, start_url: start } = await page.evaluate(async () => (await fetch(document.querySelector('link[rel=manifest]').href)).json());
  assert.deepEqual([name, icons.length > 0, start], ['Doppler', true, './']);
  await ask(page, 'a fox');
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  server.isDown = true;
  try {
    await page.reload();
    await page.locator('.said').filter({ hasText: 'a fox' }).waitFor();
    await page.waitForSelector('[data-state="ready"]');
    await ask(page, 'a table');
    await ask(page, 'code');
    await page.locator('.hljs-keyword').first().waitFor(); // also what is fetched when it is first needed
  } finally {
    server.isDown = false;
  }
  await page.context().close();
});

check('an unreachable hub is named where the model was asked for, and a search that finds none says so', async () => {
  const context = await newContext();
  await context.route('https://huggingface.co/**', (route) => route.abort());
  const page = await openTab(context, '#/models');
  await page.waitForSelector('[data-state="ready"]');
  await page.fill('#hub-words', 'qwen');
  await page.keyboard.press('Enter');
  await page.getByText('https://huggingface.co could not be reached').waitFor();
  await context.close();
});

check('a search of the hub tells sizes, memory and fit; a large download is asked about first', async () => {
  const context = await newContext();
  await context.route('https://huggingface.co/api/models?**', (route) => route.fulfill({ json: [{ id: 'some/Huge-GGUF', downloads: 1234 }, { id: 'some/Small-GGUF', downloads: 5 }] }));
  await context.route('https://huggingface.co/api/models/some/**', (route) => {
    const isHuge = route.request().url().includes('Huge');
    route.fulfill({ json: [{ path: `m-Q8_0.gguf`, size: 9e9 }, { path: `m-Q4_K_M.gguf`, size: isHuge ? 4e9 : 5e7 }, { path: 'mmproj-m.gguf', size: 1 }] });
  });
  const page = await openTab(context, '#/models');
  await page.waitForSelector('[data-state="ready"]');
  await page.fill('#hub-words', 'some');
  await page.keyboard.press('Enter');
  const huge = page.locator('.finds .model').filter({ hasText: 'Huge' });
  await huge.getByText('3.7 GiB file').waitFor();
  await page.getByRole('button', { name: 'Load some/Huge-GGUF' }).click();
  await page.getByRole('heading', { name: /^Download/ }).waitFor();
  assert.match(await textOf(page, '.question'), /3\.7 GiB come from huggingface\.co/);
  await page.getByRole('button', { name: 'Cancel' }).click();
  assert.match(await textOf(page, '.model-chip'), /Storyteller/);
  await page.getByRole('button', { name: 'Load some/Small-GGUF' }).click();
  await page.locator('[data-state="ready"]').filter({ hasText: 'm-Q4_K_M' }).waitFor();
  await context.close();
});

check('the picker in the head loads a model, and says there why one failed', async () => {
  const page = await open();
  await page.evaluate(() => localStorage.setItem('doppler-settings', JSON.stringify({ added: [
    { source: 'https://example.org/broken.gguf', name: 'Broken', added: true }, { source: 'https://example.org/good.gguf', name: 'Good', added: true }] })));
  await page.reload();
  await page.waitForSelector('[data-state="ready"]');
  await page.locator('.model-chip').click();
  await page.locator('.picker').getByRole('button', { name: 'Broken' }).click();
  await page.locator('.picker .error').filter({ hasText: 'is not known' }).waitFor();
  await page.locator('.picker').getByRole('button', { name: 'Good', exact: true }).click();
  await page.locator('.picker').waitFor({ state: 'hidden' });
  await page.locator('[data-state="ready"]').filter({ hasText: 'Good' }).waitFor();
  await ask(page, 'a fox');
  await page.locator('.message.assistant').getByText('Good', { exact: true }).waitFor();
  await page.context().close();
});
