// The page in headless Chromium by real clicks and keys, on the fake engine: `node web/page/test/page_test.mjs`.
//   DOPPLER_SITE   the built page (web/page/build.mjs); default: web/dist
//   SCREENSHOTS    a folder: pictures of every part at 1280 and 360 pixels in both themes go there
// Exit status 77: there is no Chromium.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { check } from './counted.mjs';
import { ask, count, openBrowser, textOf } from './opened.mjs';

const { complaints, open } = await openBrowser();
const shortcut = (page, key) => page.keyboard.press(`Control+${key}`);

// One page, as one reader uses it: each check goes on where the last one ended.
const page = await open();

check('the page works at once: the shipped model loads by itself, a suggestion is answered with figures', async () => {
  await page.getByRole('button', { name: 'The fox and the crow' }).click();
  await page.locator('.figures').waitFor();
  assert.equal(await textOf(page, '.assistant h1'), 'The fox');
  await page.locator('.figures summary').click();
  assert.match(await textOf(page, '.figures'), /first token.*tokens a second.*26\.8 MiB.*fast lane/s);
  assert.equal(await textOf(page, '.by'), 'Storyteller');
  assert.equal(await textOf(page, '.conversation a'), 'The fox and the crow');
});

check('Enter sends, Shift+Enter breaks the line', async () => {
  await page.click('#composer-text');
  await page.keyboard.type('one');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('two table');
  await page.keyboard.press('Enter');
  await page.locator('.message:last-child .figures').waitFor();
  assert.equal(await textOf(page, '.said'), 'one\ntwo table');
  assert.equal(await textOf(page, 'td[align="right"]'), '2');
});

check('code is coloured and copied, maths is set, money is not', async () => {
  await ask(page, 'code');
  await page.locator('.hljs-keyword').first().waitFor();
  await page.locator('.copy-code').click();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^def greet\(name\):\n {4}"""Says hello\."""/);
  await ask(page, 'maths');
  await page.locator('.katex-display').waitFor();
  assert.equal(await count(page, '.message:last-child .katex'), 2);
  assert.match(await textOf(page, '.message:last-child .markdown'), /It costs \$5 or \$6\./);
});

check('what a model writes cannot run, fetch or leave', async () => {
  await ask(page, 'evil');
  const links = await page.locator('.message:last-child .markdown a').evaluateAll((list) => list.map((link) => [link.getAttribute('href'), link.rel]));
  assert.deepEqual(links, [[null, 'noopener noreferrer'], ['https://example.org/p.png', 'noopener noreferrer']]);
  assert.equal(await count(page, '.message:last-child img'), 0);
  assert.match(await textOf(page, '.message:last-child .markdown'), /<img src=x onerror/);
  assert.equal(await page.evaluate(() => 'wasHurt' in window), false);
});

check('thoughts are folded', async () => {
  await ask(page, 'think');
  const thoughts = page.locator('.thoughts');
  assert.equal(await thoughts.locator('.markdown').isVisible(), false);
  await thoughts.locator('summary').click();
  assert.match(await thoughts.innerText(), /I weigh it\./);
  assert.equal(await textOf(page, '.message:last-child .body > .markdown'), 'It is so.');
});

check('the model calls a tool, the reader gives the result, the answer goes on', async () => {
  await page.getByRole('button', { name: 'Sampler and system prompt' }).click();
  await page.fill('#tools', '{"name": "weather"');
  await page.locator('#tools').blur();
  assert.equal(await textOf(page, '#tools-note'), 'The tools are no JSON.');
  await page.fill('#tools', '[{"name": "weather"}]');
  await page.locator('#tools').blur();
  await page.getByRole('button', { name: 'Close settings' }).click();
  await ask(page, 'call it');
  assert.equal(await textOf(page, '.message:last-child .calls code'), 'weather({"city": "Rome"})');
  await page.getByLabel('Result of weather').fill('sunny');
  await page.getByRole('button', { name: 'Give the result' }).click();
  await page.locator('.message:nth-last-child(2)[aria-label="Result"]').waitFor();
  await page.locator('.message:last-child .figures').waitFor();
  assert.equal(await count(page, '.calls textarea'), 0);
});

check('Esc stops an answer, and so does the button', async () => {
  for (const stop of [() => page.keyboard.press('Escape'), () => page.getByRole('button', { name: 'Stop' }).click()]) {
    await page.fill('#composer-text', 'a long one');
    await page.keyboard.press('Enter');
    await page.getByText('Sentence number 3').last().waitFor();
    await stop();
    await page.locator('.message:last-child .stop-note').waitFor();
    assert.ok(!(await textOf(page, '.message:last-child .markdown')).includes('number 120'));
  }
});

check('an answer can be given again and a question edited; both ways stay', async () => {
  await page.getByRole('button', { name: 'New chat' }).click();
  await ask(page, 'a fox');
  await page.getByRole('button', { name: 'Answer again' }).click();
  await page.getByText('2 of 2', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Earlier version' }).click();
  await page.getByText('1 of 2', { exact: true }).waitFor();
  await page.locator('.message.user').hover();
  await page.locator('.message.user').getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Edit the message').fill('a table');
  await page.keyboard.press('Enter');
  await page.locator('.assistant table').waitFor();
  await page.locator('.message:last-child .figures').waitFor();
  await page.locator('.message.user').getByRole('button', { name: 'Earlier version' }).click();
  await page.locator('.assistant h1').waitFor();
  assert.equal(await textOf(page, '.said'), 'a fox');
});

check('an answer that fails says why and can be tried again', async () => {
  await page.fill('#composer-text', 'fail');
  await page.keyboard.press('Enter');
  await page.getByText('The GPU has no room for 3 GiB more.').waitFor();
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('The GPU has no room for 3 GiB more.').waitFor();
  assert.equal(await count(page, '.message.assistant'), 2);
});

check('system prompt, sampler and seed go with the next question', async () => {
  await page.getByRole('button', { name: 'Sampler and system prompt' }).click();
  await page.getByLabel('System prompt', { exact: true }).fill('Speak like a crow.');
  await page.locator('#sampler-temperature').fill('0.3');
  await page.locator('#sampler-temperature').press('Tab');
  await page.getByLabel('Seed').fill('7');
  await page.getByRole('button', { name: 'Close settings' }).click();
  await ask(page, 'a fox again');
  const request = await page.evaluate(async () => (await import(`${location.origin}/doppler.mjs`)).Doppler.requests.at(-1));
  assert.deepEqual(request.messages[0], { role: 'system', content: 'Speak like a crow.' });
  assert.equal(request.messages.at(-1).content, 'a fox again');
  assert.deepEqual([request.temperature, request.seed], [0.3, 7]);
});

check('answers in JSON: the schema goes with the question to the model that is loaded', async () => {
  const loads = () => page.evaluate(async () => (await import(`${location.origin}/doppler.mjs`)).Doppler.loads);
  const before = await loads();
  await page.getByRole('button', { name: 'Sampler and system prompt' }).click();
  await page.getByLabel('JSON', { exact: true }).check();
  await page.getByLabel('JSON schema').fill('{"type": "boolean"');
  await page.getByLabel('JSON schema').press('Tab');
  await page.getByText('The schema is no JSON.').waitFor();
  await page.getByLabel('JSON schema').fill('{"type": "boolean"}');
  await page.getByRole('button', { name: 'Close settings' }).click();
  await ask(page, 'a fox in JSON');
  const request = await page.evaluate(async () => (await import(`${location.origin}/doppler.mjs`)).Doppler.requests.at(-1));
  assert.deepEqual(request.response_format, { type: 'json_schema', json_schema: { schema: { type: 'boolean' } } });
  assert.equal(await loads(), before);
  await page.getByRole('button', { name: 'Sampler and system prompt' }).click();
  await page.getByLabel('JSON', { exact: true }).uncheck();
  await page.getByRole('button', { name: 'Close settings' }).click();
});

check('an adapter is added from a file, by address and from a PEFT folder\'s files; answers have the chosen one, and the model is loaded once for its room', async () => {
  const loads = () => page.evaluate(async () => (await import(`${location.origin}/doppler.mjs`)).Doppler.loads);
  const answer = async () => {
    await ask(page, 'a fox');
    return [await textOf(page, '.message:last-child .markdown'), await textOf(page, '.by')];
  };
  const adapter = page.getByLabel('Of the next answer');
  const add = async (name, address) => {
    await page.getByLabel('Add by address or name').fill(address);
    await page.keyboard.press('Enter');
    await page.waitForFunction((wanted) => document.querySelector('#adapter').value === wanted, name);
  };
  await page.getByRole('button', { name: 'Sampler and system prompt' }).click();
  const plain = await answer();
  assert.match(plain[0], /^The fox/);
  const before = await loads();
  await page.getByLabel('Adapter files').setInputFiles({ name: 'pirate.gguf', mimeType: '', buffer: Buffer.from('GGUF') });
  await page.locator('#adapter option').filter({ hasText: 'pirate' }).waitFor({ state: 'attached' });
  assert.deepEqual(await answer(), ['Ahoy from pirate!', `${plain[1]} + pirate`]);
  await add('tone', 'someone/tone');
  assert.deepEqual(await answer(), ['Ahoy from tone!', `${plain[1]} + tone`]);
  await adapter.focus();
  await page.keyboard.type('None');
  assert.deepEqual(await answer(), plain);
  await page.getByLabel('Adapter files').setInputFiles(['adapter_config.json', 'adapter_model.safetensors'].map((name) => ({ name, mimeType: '', buffer: Buffer.from('{}') })));
  await page.waitForFunction(() => document.querySelector('#adapter').value === 'adapter');
  assert.equal(await loads(), before + 1);
  await page.getByRole('button', { name: 'Remove this adapter' }).click();
  assert.deepEqual(await adapter.locator('option').allInnerTexts(), ['None', 'pirate', 'tone']);

  await add('large', 'someone/large'); // of another rank: the model is loaded with all three
  assert.equal(await loads(), before + 2);
  await adapter.selectOption('pirate');
  assert.deepEqual(await answer(), ['Ahoy from pirate!', `${plain[1]} + pirate`]);

  await page.getByLabel('Adapter files').setInputFiles({ name: 'adapter_config.json', mimeType: '', buffer: Buffer.from('{}') });
  await page.getByText('"adapter_config.json" is no adapter: choose a .gguf file, or adapter_config.json and adapter_model.safetensors together.').waitFor();
  await page.getByLabel('Adapter files').setInputFiles({ name: 'bad.gguf', mimeType: '', buffer: Buffer.from('x') });
  await page.getByText('bad.gguf is no adapter.').waitFor();
  assert.equal(await loads(), before + 2);
  await page.getByLabel('Add by address or name').fill('nonsense');
  await page.keyboard.press('Enter');
  await page.getByText('"nonsense" is neither an address').waitFor();
  await adapter.selectOption('');
  await page.getByRole('button', { name: 'Close settings' }).click();
});

check('a reload shows the conversation again; search and Ctrl+K find the other one', async () => {
  await page.reload();
  await page.locator('.said').filter({ hasText: 'a fox again' }).waitFor();
  await page.getByLabel('Search conversations').fill('weigh caw');
  await page.getByText('Nothing was found.').waitFor();
  await page.getByLabel('Search conversations').fill('costs caw');
  await page.locator('.conversation').waitFor();
  await page.getByLabel('Search conversations').fill('');
  await shortcut(page, 'k');
  await page.keyboard.type('crow costs');
  await page.getByRole('option', { name: 'The fox and the crow' }).waitFor();
  await page.keyboard.press('Enter');
  await page.locator('.said').filter({ hasText: 'two table' }).waitFor();
});

check('conversations leave as a file, are deleted, and come back from it', async () => {
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export' }).click()]);
  const file = await download.path();
  assert.equal(JSON.parse(readFileSync(file, 'utf8')).conversations.length, 2);
  for (let left = 2; left > 0; --left) {
    await page.locator('.conversation').first().hover();
    await page.locator('.conversation').first().getByRole('button', { name: /^Delete/ }).click();
    await page.waitForFunction((most) => document.querySelectorAll('.conversation').length < most, left);
  }
  await page.getByLabel('Conversations file').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: readFileSync(file) });
  await page.getByText('2 conversations were added').waitFor();
  await page.locator('.conversation').nth(1).waitFor();
  await page.getByLabel('Conversations file').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from('{}') });
  await page.getByText('"doppler-conversations" is allowed').waitFor();
});

check('models: size, memory, stored mark; a wrong source is refused; a load shows its progress and is cancelled', async () => {
  await page.getByRole('link', { name: 'Models' }).click();
  const row = (name) => page.locator('.model').filter({ hasText: name });
  await row('Storyteller').getByText('loaded').waitFor();
  assert.match(await row('Storyteller').innerText(), /shipped.*stored.*14\.8 MiB file · 26\.8 MiB on the GPU/s);
  assert.match(await row('Llama 3.2 1B').innerText(), /771 MiB file · ≈ 931 MiB on the GPU/);
  assert.match(await row('kept').innerText(), /stored/);
  await page.fill('#source', 'nonsense');
  await page.keyboard.press('Enter');
  await page.getByText('"nonsense" is neither an address').waitFor();
  await page.fill('#source', 'https://example.org/slow.gguf');
  await page.keyboard.press('Enter');
  await page.locator('.page-part .progress-detail').filter({ hasText: /of 14\.8 MiB · 8\.6 MiB\/s · .* left/ }).waitFor();
  await page.locator('.page-part').getByRole('button', { name: 'Cancel' }).click();
  await page.locator('[data-state="ready"]').filter({ hasText: 'Storyteller' }).waitFor();
  await page.fill('#source', 'someone/missing');
  await page.keyboard.press('Enter');
  await page.locator('#source-error').filter({ hasText: '404' }).waitFor();
  await row('missing').waitFor({ state: 'detached' });
});

check('a file is loaded by the picker and by a drop', async () => {
  await page.getByLabel('Model files').setInputFiles({ name: 'picked.gguf', mimeType: '', buffer: Buffer.from('GGUF') });
  await page.locator('[data-state="ready"]').filter({ hasText: 'picked' }).waitFor();
  await page.evaluate(() => {
    const data = new DataTransfer();
    data.items.add(new File(['GGUF'], 'dropped.gguf'));
    document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
  });
  await page.locator('[data-state="ready"]').filter({ hasText: 'dropped' }).waitFor();
});

check('pictures are picked, pasted and dropped, taken back, sent and edited with their message', async () => {
  const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC', 'base64');
  const waiting = page.getByRole('list', { name: 'Pictures of the message' }).locator('img');
  await page.getByRole('link', { name: 'Chat', exact: true }).click();
  await page.locator('.composer input[type=file]').setInputFiles([{ name: 'a.png', mimeType: 'image/png', buffer: png }, { name: 'b.png', mimeType: 'image/png', buffer: png }]);
  await waiting.nth(1).waitFor();
  for (const kind of ['paste', 'drop']) {
    await page.evaluate(async ([event, text]) => {
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], 'c.png', { type: 'image/png' }));
      const target = /** @type {any} */ (document.getElementById('composer-text'));
      target.dispatchEvent(event === 'paste' ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
        : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
    }, [kind, png.toString('base64')]);
  }
  await waiting.nth(3).waitFor();
  await page.getByRole('button', { name: 'Remove picture 4' }).click();
  await page.getByRole('button', { name: 'Remove picture 3' }).click();
  await ask(page, 'What is this?');
  await page.locator('.message.user').last().locator('img').nth(1).waitFor();
  const sent = async () => page.evaluate(async () => (await import(`${location.origin}/doppler.mjs`)).Doppler.requests.at(-1).messages.at(-1).content);
  const url = `data:image/png;base64,${png.toString('base64')}`;
  const wanted = (text) => [{ type: 'image_url', image_url: { url } }, { type: 'image_url', image_url: { url } }, { type: 'text', text }];
  assert.deepEqual(await sent(), wanted('What is this?'));
  await page.locator('.message.user').last().getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Edit the message').fill('And now?');
  await page.getByLabel('Edit the message').press('Enter');
  await page.locator('.message:last-child .figures').waitFor();
  assert.deepEqual(await sent(), wanted('And now?'));
});

check('the bench fills table and plots and exports its report', async () => {
  await page.getByRole('link', { name: 'Bench' }).click();
  await page.getByLabel('Depths').fill('0, 256');
  await page.getByRole('button', { name: 'Run' }).click();
  const save = page.getByRole('button', { name: 'Export JSON' });
  await save.waitFor();
  assert.deepEqual(await page.locator('.results tbody th').allInnerTexts(), ['pp128', 'tg32', 'pp128 @ d256', 'tg32 @ d256']);
  assert.match((await page.locator('.plot').first().getAttribute('aria-label')) ?? '', /Prefill.* at 0, .* at 256/);
  const [download] = await Promise.all([page.waitForEvent('download'), save.click()]);
  const report = JSON.parse(readFileSync(await download.path(), 'utf8'));
  assert.deepEqual([report.kind, report.tests.length, report.device.adapter], ['bench', 4, 'Fake Graphics 3000']);
});

check('the device tab names features, kernels with reasons and what the self test found', async () => {
  await page.getByRole('link', { name: 'Device' }).click();
  await page.getByText('the subgroup size is 8; 32 is needed.').waitFor();
  await page.getByText('shader-f16').waitFor();
  await page.getByRole('button', { name: 'Run the self test' }).click();
  await page.getByText('Kernels of the lane fast compute wrong here.').waitFor();
  await page.getByRole('button', { name: 'Copy the report' }).click();
  const report = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(report, /adapter: Fake Graphics 3000.*kernel attention 8 heads of 64: attention\.decode\.portable; not .*by matvec\.q4_k\.subgroup/s);
});

check('the theme follows the system until one is chosen, and stays chosen', async () => {
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await back();
  await page.getByRole('button', { name: 'Change the theme' }).click();
  assert.notEqual(await back(), dark);
  await page.reload();
  await page.waitForSelector('[data-state="ready"]');
  assert.notEqual(await back(), dark);
});

check('at 360 pixels nothing is cut off, the list is a drawer, and a question is answered', async () => {
  const phone = await open({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  for (const tab of ['Models', 'Bench', 'Device', 'Chat']) {
    await phone.getByRole('link', { name: tab, exact: true }).tap();
    await phone.locator(`section[aria-label="${tab}"]`).waitFor();
    const wide = await phone.evaluate(() => [...document.querySelectorAll('body *')]
      .filter((element) => element.checkVisibility() && element.getBoundingClientRect().right > innerWidth + 1 && !element.closest('.table-frame, pre'))
      .map((element) => element.outerHTML.slice(0, 80)));
    assert.deepEqual(wide, []);
  }
  await ask(phone, 'a table');
  await phone.getByRole('button', { name: 'Conversations' }).tap();
  await phone.getByRole('link', { name: 'a table' }).waitFor();
  await phone.waitForFunction(() => document.querySelector('#sidebar')?.getBoundingClientRect().left === 0);
  await phone.locator('#veil').tap({ position: { x: 350, y: 300 } });
  await phone.waitForFunction(() => !document.body.classList.contains('drawer'));
  await phone.context().close();
});

check('every control has a name', async () => {
  const nameless = await page.evaluate(() => [...document.querySelectorAll('button, a, input, textarea, select')]
    .filter((element) => !element.textContent?.trim() && !element.getAttribute('aria-label') && !(/** @type {any} */ (element).labels?.length))
    .map((element) => element.outerHTML));
  assert.deepEqual(nameless, []);
});

check('the page had nothing to complain of', async () => {
  assert.deepEqual(complaints, []);
  if (process.env.SCREENSHOTS) await takePictures(process.env.SCREENSHOTS);
});

/** @param {string} folder */
async function takePictures(folder) {
  for (const [width, height] of [[1280, 800], [360, 740]]) {
    for (const colorScheme of ['light', 'dark']) {
      const shown = await open({ viewport: { width, height }, colorScheme });
      const picture = (name) => shown.screenshot({ path: join(folder, `${width}-${colorScheme}-${name}.png`) });
      await picture('begin');
      for (const question of ['a fox', 'code', 'table', 'maths', 'think']) await ask(shown, question);
      await picture('chat');
      await shown.evaluate(() => localStorage.setItem('doppler-settings', JSON.stringify({ tools: '[{"name": "weather"}]' })));
      await shown.reload();
      await ask(shown, 'call it');
      await picture('tools');
      await shown.locator('.copy-code').scrollIntoViewIfNeeded();
      await picture('code');
      await shown.getByRole('button', { name: 'Sampler and system prompt' }).click();
      await picture('sampler');
      await shown.getByRole('button', { name: 'Close settings' }).click();
      await shortcut(shown, 'k');
      await picture('palette');
      await shown.keyboard.press('Escape');
      await shown.getByRole('link', { name: 'Models', exact: true }).click();
      await picture('models');
      await shown.getByRole('link', { name: 'Bench', exact: true }).click();
      await shown.getByRole('button', { name: 'Run' }).click();
      await shown.getByRole('button', { name: 'Export JSON' }).waitFor();
      await picture('bench');
      await shown.getByRole('link', { name: 'Device', exact: true }).click();
      await shown.getByText('the subgroup size is 8').waitFor();
      await picture('device');
      await shown.context().close();
    }
  }
}
