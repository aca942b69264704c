// The page on the real engine: `doppler web` serves it, Chromium's WebGPU on the CPU runs the shipped model.
//   DOPPLER_SITE     the built page (web/page/build.mjs); default: web/dist
//   DOPPLER_NATIVE   the program
// Exit status 77: there is no Chromium.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromiumPath, launch } from './browser.mjs';
import { check } from './counted.mjs';
import { writeAdapter } from './small_adapter.mjs';

const kSkipped = 77;
const kWaitMs = 180000; // kernels compile on two slow cores
const kNoticedMs = 10000; // that a worker ended
const kTokens = 10;
const root = fileURLToPath(new URL('../../..', import.meta.url));
const site = process.env.DOPPLER_SITE ?? `${root}/web/dist`;
const program = process.env.DOPPLER_NATIVE ?? `${root}/build/release/src/cli/doppler`;
const model = `${root}/models/storyteller.gguf`;
if (!chromiumPath()) {
  console.log('skipped: there is no Chromium; tools/setup web installs it');
  process.exit(kSkipped);
}

/**
 * A reader's page, which `doppler web` serves.
 * @param {object} settings besides the lane whose kernels compile fastest on the CPU
 * @param {(page: any) => Promise<void>} body
 */
async function withPage(settings, body) {
  const server = spawn(program, ['web', '--site', site, '--port', '0', '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(server.stdout, 'data');
  const browser = await launch();
  try {
    const context = await browser.newContext();
    context.setDefaultTimeout(kWaitMs);
    await context.addInitScript((text) => localStorage.setItem('doppler-settings', text), JSON.stringify({ lane: 'exact', ctx: 128, ...settings }));
    await context.addInitScript(() => {
      const { Worker } = window;
      window.Worker = class extends Worker {
        constructor(...given) {
          super(...given);
          globalThis.lastWorker = this;
        }
      };
    });
    const page = await context.newPage();
    const complaints = [];
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(String(error.stack)));
    await page.goto(JSON.parse(String(line)).url);
    await body(page);
    assert.deepEqual(complaints, []);
  } finally {
    await browser.close();
    server.kill('SIGTERM');
    await once(server, 'exit');
  }
}

check('the shipped model answers in the page that doppler web serves, also when its worker ends in the middle of an answer', () =>
  withPage({}, async (page) => {
    await page.getByRole('button', { name: 'Sampler and system prompt' }).click();
    await page.locator('#sampler-max_tokens').fill('12');
    await page.locator('#sampler-max_tokens').press('Tab');
    await page.getByRole('button', { name: 'Close settings' }).click();
    await page.fill('#composer-text', 'The fox and the crow');
    await page.keyboard.press('Enter');
    await page.locator('.figures, .message .error').first().waitFor();
    assert.equal(await page.locator('.message .error').count(), 0, await page.locator('.message').last().innerText());
    assert.match(await page.locator('.message.assistant .markdown').innerText(), /(\w+\W+){6}/);
    await page.locator('.figures summary').click();
    assert.match(await page.locator('.figures').innerText(), /first token\s+[\d.]+ .*Writing\s+[\d.]+ tokens.*12 tokens.* MiB.*exact lane/s);
    // The worker goes away in the middle of an answer: another one begins, from the storage, and the sentence goes on.
    await page.fill('#composer-text', 'The king and the miller');
    await page.keyboard.press('Enter');
    const second = page.locator('.message.assistant').nth(1);
    await page.waitForFunction(() => document.querySelectorAll('.message.assistant .markdown')[1]?.textContent?.trim());
    const before = (await second.locator('.markdown').innerText()).trim();
    await page.evaluate(() => globalThis.lastWorker.terminate());
    await page.locator('[data-state="recovering"]').waitFor({ timeout: kNoticedMs });
    await second.locator('.figures').waitFor();
    await page.locator('[data-state="ready"]').waitFor();
    const whole = (await second.locator('.markdown').innerText()).trim();
    assert.ok(whole.startsWith(before) && whole.length > before.length, `${before} | ${whole}`);
    await second.locator('.figures summary').click();
    assert.match(await second.locator('.figures').innerText(), /12 tokens/);
    assert.doesNotMatch(await second.locator('.figures').innerText(), /first token\s+0 ms/);
    if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/model.png` });
  }));

check('an adapter that is picked changes the next answer as natively, and None changes it back', async () => {
  const question = 'The fox and the crow';
  const folder = mkdtempSync(join(tmpdir(), 'doppler-adapter-'));
  const files = writeAdapter(folder);
  const words = (text) => text.match(/\w+/g);
  const native = (...flags) => words(JSON.parse(execFileSync(program, ['run', '--model', model, '--lane', 'exact', '--temp', '0', '--json', '-n', String(kTokens), ...flags, question],
    { encoding: 'utf8' })).text);
  const [plain, adapted] = [native(), native('--lora', folder)];
  assert.notDeepEqual(adapted, plain);
  try {
    await withPage({ sampler: { temperature: 0, max_tokens: kTokens } }, async (page) => {
      await page.getByRole('button', { name: 'Sampler and system prompt' }).click();
      const answered = async () => {
        await page.getByRole('button', { name: 'New chat' }).click();
        await page.fill('#composer-text', question);
        await page.keyboard.press('Enter');
        await page.locator('.figures, .message .error').first().waitFor();
        return words(await page.locator('.message.assistant .markdown').innerText());
      };
      assert.deepEqual(await answered(), plain);
      await page.getByLabel('Adapter files').setInputFiles(files);
      await page.locator('#adapter option').nth(1).waitFor({ state: 'attached' });
      for (const [name, wanted] of [['adapter', adapted], ['', plain], ['adapter', adapted]]) {
        await page.getByLabel('Of the next answer').selectOption(name);
        assert.deepEqual(await answered(), wanted, name);
      }
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
