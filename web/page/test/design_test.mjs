// Measures the look of the page: sizes that fingers touch, the first paint, refusals, axe.
//   DOPPLER_SITE   the built page (web/page/build.mjs); default: web/dist
// Exit status 77: there is no Chromium.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { check } from './counted.mjs';
import { ask, count, openBrowser, textOf } from './opened.mjs';

const { newContext, openTab, open, server } = await openBrowser();
const axe = readFileSync(fileURLToPath(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url)), 'utf8');
const kPhone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

check('something is visible within half a second at 1.6 Mbit/s, and little is fetched', async () => {
  const context = await newContext();
  const page = await context.newPage();
  const network = await context.newCDPSession(page);
  await network.send('Network.enable');
  await network.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: 1.6e6 / 8, uploadThroughput: 1e6 });
  let requests = 0;
  page.on('request', () => requests++);
  await page.goto(server.address, { waitUntil: 'commit' });
  const first = await page.evaluate(() => new Promise((resolve) => {
    new PerformanceObserver((list) => resolve(list.getEntriesByName('first-contentful-paint')[0]?.startTime))
      .observe({ type: 'paint', buffered: true });
  }));
  const { bytes, fetched } = await page.evaluate(() => {
    const [frame] = /** @type {any[]} */ (performance.getEntriesByType('navigation'));
    return { bytes: frame.transferSize, fetched: frame.responseEnd - frame.requestStart };
  });
  console.log(`first paint after ${Math.round(first)} ms; the frame has ${bytes} bytes and came in ${Math.round(fetched)} ms`);
  assert.ok(bytes < 12_000, `${bytes} bytes`); // 60 ms of such a line
  await page.waitForSelector('[data-state="ready"]');
  assert.ok(requests < 16, `${requests} requests`);
  await context.close();
});

check('on a phone whatever is touched has 44 pixels, in each tab and in the drawer', async () => {
  const phone = await open(kPhone);
  await ask(phone, 'a table');
  const small = () => phone.evaluate(() => [...document.querySelectorAll('button, a, input:not([type="range"], [type="checkbox"], .only-read), select, summary, textarea')]
    .filter((element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest('.markdown') && !element.matches('.skip'))
    .map((element) => [element.getBoundingClientRect(), element])
    .filter(([{ width, height }]) => width < 43.5 || height < 43.5)
    .map(([{ width, height }, element]) => `${Math.round(width)} x ${Math.round(height)}: ${element.outerHTML.slice(0, 70)}`));
  for (const tab of ['Models', 'Bench', 'Device', 'Chat']) {
    await phone.getByRole('link', { name: tab, exact: true }).tap();
    assert.deepEqual(await small(), [], tab);
  }
  await phone.getByRole('button', { name: 'Conversations' }).tap();
  await phone.waitForFunction(() => document.querySelector('#sidebar')?.getBoundingClientRect().left === 0);
  assert.deepEqual(await small(), [], 'drawer');
  await phone.context().close();
});

check('a phone on its side has room for the chat, the end of an answer is in sight, and no notice covers Send', async () => {
  const phone = await open({ ...kPhone, viewport: { width: 740, height: 360 } });
  for (const question of ['code', 'a table', 'a fox']) await ask(phone, question);
  const box = (selector) => phone.locator(selector).last().boundingBox();
  assert.ok((await box('.scroller')).height > 200, JSON.stringify(await box('.scroller')));
  const end = await box('.message.assistant .foot');
  const field = await box('.composer');
  assert.ok(end.y + end.height <= field.y + 1, JSON.stringify([end, field]));
  await phone.fill('#composer-text', 'line\n'.repeat(4));
  await phone.waitForFunction(() => document.querySelector('.message:last-child .foot').getBoundingClientRect().bottom <= document.querySelector('.composer').getBoundingClientRect().top + 1);
  await phone.getByRole('button', { name: 'Change the theme' }).tap();
  const [note, send] = [await box('.notice'), await box('.send')];
  assert.ok(note.y + note.height <= send.y || note.x + note.width <= send.x || note.x >= send.x + send.width, JSON.stringify([note, send]));
  await phone.context().close();
});

check('settings refuse what they cannot mean, and say what they can', async () => {
  const page = await open();
  await page.getByRole('button', { name: 'Sampler and system prompt' }).click();
  await page.locator('#sampler-temperature').fill('');
  await page.locator('#sampler-temperature').press('Tab');
  await page.getByText('Temperature is a number from 0 to 2; it stays 0.8.').waitFor();
  assert.equal(await page.inputValue('#sampler-temperature'), '0.8');
  await page.locator('#seed').fill('-3');
  await page.locator('#seed').press('Tab');
  await page.getByText('"-3" is no seed: a whole number from 0 to 4294967295, or nothing.').waitFor();
  assert.equal(await page.inputValue('#seed'), '');
  await page.context().close();
});

check('an answer names its model; its figures are plain words behind Details', async () => {
  const page = await open();
  await ask(page, 'a fox');
  assert.equal(await textOf(page, '.by'), 'Storyteller');
  assert.equal(await page.getByText('tokens a second').first().isVisible(), false);
  await page.locator('.figures summary').click();
  assert.match(await textOf(page, '.figures'), /Time to the first token\s+\d+ ms/);
  assert.equal(await count(page, '.message [dir="auto"]') > 1, true);
  await page.context().close();
});

for (const [width, height] of [[1280, 800], [360, 740]]) {
  for (const colorScheme of ['light', 'dark']) {
    check(`axe finds nothing at ${width} pixels, ${colorScheme}`, async () => {
      const page = await open({ viewport: { width, height }, colorScheme });
      await ask(page, 'code');
      await page.locator('.figures summary').click();
      for (const tab of ['Models', 'Bench', 'Device', 'Chat']) {
        await page.getByRole('link', { name: tab, exact: true }).click();
        await page.locator(`section[aria-label="${tab}"]`).waitFor();
        const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ['violations'] })`);
        assert.deepEqual(found.violations.map(({ id, nodes }) => [id, nodes[0].target.join(' ')]), [], tab);
      }
      await page.locator('.model-chip').click();
      await page.locator('.pick-list button').first().waitFor();
      const found = await page.evaluate(`${axe}; axe.run(document.querySelector('dialog[open]'), { resultTypes: ['violations'] })`);
      assert.deepEqual(found.violations.map(({ id }) => id), []);
      await page.context().close();
    });
  }
}
