// The page on the fake engine in headless Chromium, opened as readers do: what the tests by clicks share.
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromiumPath, launch, serve } from './browser.mjs';

const kSkipped = 77;
const kWaitMs = Number(process.env.WAIT_MS ?? 20000); // two slow cores that others use too

/** Ends the program with exit status 77 if there is no Chromium. */
export async function openBrowser() {
  if (!chromiumPath()) {
    console.log('skipped: there is no Chromium; tools/setup web installs it');
    process.exit(kSkipped);
  }
  const site = process.env.DOPPLER_SITE ?? fileURLToPath(new URL('../../dist', import.meta.url));
  const server = await serve(site, { '/doppler.mjs': fileURLToPath(new URL('fake_engine.mjs', import.meta.url)) });
  const browser = await launch();
  /** The complaints of pages. @type {string[]} */ const complaints = [];

  /** @param {object} [options] of the context: size, theme */
  const newContext = async (options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, permissions: ['clipboard-read', 'clipboard-write'], ...options });
    context.setDefaultTimeout(kWaitMs);
    return context;
  };
  /** Another tab. @param {any} context @param {string} [where] behind the address */
  const openTab = async (context, where = '') => {
    const page = await context.newPage();
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(String(error.stack)));
    await page.goto(server.address + where);
    return page;
  };
  /** A new reader. @param {object} [options] @param {string} [where] */
  const open = async (options = {}, where = '') => {
    const page = await openTab(await newContext(options), where);
    await page.waitForSelector('[data-state="ready"]');
    return page;
  };
  after(async () => {
    await browser.close();
    server.close();
  });
  return { server, browser, complaints, newContext, openTab, open };
}

/** @param {any} page @param {string} text */
export async function ask(page, text) {
  const answers = await page.locator('.message.assistant').count();
  await page.fill('#composer-text', text);
  await page.keyboard.press('Enter');
  await page.locator('.message.assistant').nth(answers).locator('.figures').waitFor();
}

export const count = (page, selector) => page.locator(selector).count();
export const textOf = (page, selector) => page.locator(selector).last().innerText();
