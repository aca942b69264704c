// The page in Firefox on the real engine: `doppler web` serves it, the shipped model answers. By ctest:
//   DOPPLER_FIREFOX  the browser
//   DOPPLER_SITE     the built page (web/page/build.mjs); DOPPLER_NATIVE the program
// Exit status 77: there is no Firefox, or none with a WebGPU adapter.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { kEnterKey, launchFirefox } from '../../../tests/web/firefox.mjs';
import { check } from './counted.mjs';

const kSkipped = 77;
const { DOPPLER_FIREFOX, DOPPLER_SITE = '', DOPPLER_NATIVE = '', SCREENSHOTS } = process.env;
if (!DOPPLER_FIREFOX) {
  console.log('skipped: there is no Firefox; tools/setup firefox installs it');
  process.exit(kSkipped);
}
const server = spawn(DOPPLER_NATIVE, ['web', '--site', DOPPLER_SITE, '--port', '0', '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
const { url } = JSON.parse(String(await once(server.stdout, 'data')));
const browser = await launchFirefox(DOPPLER_FIREFOX);
const page = await (await browser.newContext()).newPage();
/** @type {string[]} */ const complaints = [];
page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));

async function end() {
  await browser.close();
  server.kill('SIGTERM');
  await once(server, 'exit');
}

await page.goto(url);
const { available, reason } = await page.evaluate(async () => (await import('/doppler.mjs')).Doppler.probe());
if (!available) {
  console.log(`skipped: ${reason}`);
  await end();
  process.exit(kSkipped);
}

check(`the shipped model answers in the page that doppler web serves, in ${browser.version()}`, async () => {
  try {
    // The lane whose kernels compile fastest on the CPU.
    await page.evaluate((settings) => localStorage.setItem('doppler-settings', settings),
      JSON.stringify({ lane: 'exact', ctx: 128, sampler: { max_tokens: 12 } }));
    await page.goto(url);
    await page.waitForFunction(() => document.querySelector('#composer-text'));
    await page.evaluate(() => /** @type {any} */ (document.querySelector('#composer-text')).focus());
    await page.type(`The fox and the crow${kEnterKey}`);
    await page.waitForFunction(() => document.querySelector('.figures, .message .error'));
    const shown = await page.evaluate(() => {
      const text = (selector) => /** @type {any} */ (document.querySelector(selector))?.innerText ?? '';
      document.querySelector('.figures')?.setAttribute('open', '');
      return { error: text('.message .error'), answer: text('.message.assistant .markdown'), figures: text('.figures') };
    });
    if (SCREENSHOTS) writeFileSync(`${SCREENSHOTS}/firefox.png`, await page.screenshot());
    assert.equal(shown.error, '');
    assert.match(shown.answer, /(\w+\W+){6}/);
    assert.match(shown.figures, /first token\s+[\d.]+ .*Writing\s+[\d.]+ tokens.*12 tokens.* MiB.*exact lane/s);
    assert.deepEqual(complaints, []);
  } finally {
    await end();
  }
});
