// The page on the real engine: `doppler web` serves it, Chromium's WebGPU on the CPU runs the shipped model.
//   DOPPLER_SITE     the built page (web/page/build.mjs); default: web/dist
//   DOPPLER_NATIVE   the program
// Exit status 77: there is no Chromium.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { chromiumPath, launch } from './browser.mjs';
import { check } from './counted.mjs';

const kSkipped = 77;
const kWaitMs = 180000; // kernels compile on two slow cores
const root = fileURLToPath(new URL('../../..', import.meta.url));
const site = process.env.DOPPLER_SITE ?? `${root}/web/dist`;
const program = process.env.DOPPLER_NATIVE ?? `${root}/build/release/src/cli/doppler`;
if (!chromiumPath()) {
  console.log('skipped: there is no Chromium; tools/setup web installs it');
  process.exit(kSkipped);
}

check('the shipped model answers in the page that doppler web serves', async () => {
  const server = spawn(program, ['web', '--site', site, '--port', '0', '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(server.stdout, 'data');
  const browser = await launch();
  try {
    const context = await browser.newContext();
    context.setDefaultTimeout(kWaitMs);
    // The lane whose kernels compile fastest on the CPU.
    await context.addInitScript((settings) => localStorage.setItem('doppler-settings', settings), JSON.stringify({ lane: 'exact', ctx: 128 }));
    const page = await context.newPage();
    const complaints = [];
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(String(error.stack)));
    await page.goto(JSON.parse(String(line)).url);
    await page.getByRole('button', { name: 'Sampler and system prompt' }).click();
    await page.locator('#sampler-max_tokens').fill('12');
    await page.locator('#sampler-max_tokens').press('Tab');
    await page.getByRole('button', { name: 'Close settings' }).click();
    await page.fill('#composer-text', 'The fox and the crow');
    await page.keyboard.press('Enter');
    await page.locator('.figures, .message .error').first().waitFor();
    assert.equal(await page.locator('.message .error').count(), 0, await page.locator('.message').last().innerText());
    assert.match(await page.locator('.message.assistant .markdown').innerText(), /(\w+\W+){6}/);
    assert.match(await page.locator('.figures').innerText(), /TTFT [\d.]+ .*decode [\d.]+ tok\/s.*12 tokens.* MiB.*exact lane/s);
    assert.deepEqual(complaints, []);
    if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/model.png` });
  } finally {
    await browser.close();
    server.kill('SIGTERM');
    await once(server, 'exit');
  }
});
