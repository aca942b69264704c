// A headless Firefox as Debian packages it, asked by WebDriver BiDi (https://w3c.github.io/webdriver-bidi/) in
// Playwright's words, as far as the tests use them: Playwright itself asks for commands that this Firefox does not
// know.
// Node 20 has WebSocket only with --experimental-websocket. Read next: browser_test.mjs.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

// On Linux the first preference enables WebGPU, on a CPU also the second. A site that asks to keep its storage makes
// Firefox ask the user; the other preferences are the answer.
const kPreferences = { 'dom.webgpu.enabled': true, 'gfx.webgpu.ignore-blocklist': true,
  'dom.storageManager.prompt.testing': true, 'dom.storageManager.prompt.testing.allow': true };
const kWaitMs = 180000; // kernels compile on two slow cores
export const kEnterKey = '\uE007';

/** @param {string} program */
export async function launchFirefox(program) {
  const profile = mkdtempSync(join(tmpdir(), 'doppler-firefox-'));
  const lines = Object.entries(kPreferences).map(([name, value]) => `user_pref("${name}", ${value});`);
  writeFileSync(join(profile, 'user.js'), lines.join('\n'));
  const firefox = spawn(program, ['--headless', '--no-remote', '--remote-debugging-port=0', '--profile', profile],
    { stdio: ['ignore', 'ignore', 'pipe'] });
  process.once('exit', () => firefox.kill());
  const ended = new Promise((resolve) => firefox.once('close', resolve));
  const address = await new Promise((resolve, reject) => {
    /** @type {string[]} */ const said = [];
    createInterface({ input: firefox.stderr }).on('line', (line) => {
      said.push(line);
      const [, found] = /^WebDriver BiDi listening on (ws:\S+)$/.exec(line) ?? [];
      if (found) resolve(found);
    });
    ended.then(() => reject(new Error(`Firefox ended:\n${said.join('\n')}`)));
  });
  const connection = await Connection.open(`${address}/session`);
  const { capabilities } = await connection.ask('session.new', { capabilities: {} });
  await connection.ask('session.subscribe', { events: ['log.entryAdded'] });
  return {
    version: () => `Firefox ${capabilities.browserVersion}`,
    newContext: () => newContext(connection),
    async close() {
      connection.ask('browser.close', {}).catch(() => {});
      await ended;
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** Tabs with a storage of their own. @param {Connection} connection */
async function newContext(connection) {
  const { userContext } = await connection.ask('browser.createUserContext', {});
  return {
    async newPage() {
      const { context } = await connection.ask('browsingContext.create', { type: 'tab', userContext });
      return new Page(connection, context);
    },
    close: () => connection.ask('browser.removeUserContext', { userContext }),
  };
}

class Page {
  /** @param {Connection} connection @param {string} context */
  constructor(connection, context) {
    this.connection = connection;
    this.context = context;
  }

  /**
   * @param {'console'} _
   * @param {(message: {type: () => string, text: () => string}) => void} tell also of what the page throws
   */
  on(_, tell) {
    this.connection.onLog.set(this.context, ({ level, text }) => tell({ type: () => level, text: () => text }));
  }

  /** @param {string} url */
  goto(url) {
    return this.connection.ask('browsingContext.navigate', { context: this.context, url, wait: 'complete' });
  }

  /**
   * Arguments and results are JSON.
   * @param {Function | string} body
   * @param {any} [given]
   * @returns {Promise<any>}
   */
  async evaluate(body, given) {
    const call = `(${body})(...${JSON.stringify(given === undefined ? [] : [given])})`;
    const { result, exceptionDetails } = await this.connection.ask('script.evaluate', { target: { context: this.context },
      expression: `(async () => JSON.stringify(await ${call}))()`, awaitPromise: true });
    if (exceptionDetails) throw new Error(exceptionDetails.text);
    return result.value === undefined ? undefined : JSON.parse(result.value);
  }

  /** @param {() => any} holds */
  async waitForFunction(holds) {
    const end = Date.now() + kWaitMs;
    while (!(await this.evaluate(`() => Boolean((${holds})())`))) {
      if (Date.now() > end) throw new Error(`For ${kWaitMs / 1000} s this did not hold: ${holds}`);
      await this.waitForTimeout(20);
    }
  }

  /** @param {number} ms */
  waitForTimeout(ms) {
    return new Promise((resolve) => setTimeout(resolve, ms));
  }

  /** Presses the keys of a text. @param {string} text */
  type(text) {
    const actions = [...text].flatMap((value) => [{ type: 'keyDown', value }, { type: 'keyUp', value }]);
    return this.connection.ask('input.performActions', { context: this.context, actions: [{ type: 'key', id: 'keys', actions }] });
  }

  /** @returns {Promise<Buffer>} a PNG */
  async screenshot() {
    const { data } = await this.connection.ask('browsingContext.captureScreenshot', { context: this.context });
    return Buffer.from(data, 'base64');
  }

  close() {
    return this.connection.ask('browsingContext.close', { context: this.context });
  }
}

class Connection {
  #lastNumber = 0;
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */ #underWay = new Map();
  /** By context. @type {Map<string, (entry: any) => void>} */ onLog = new Map();

  /** @param {string} address */
  static async open(address) {
    const self = new this();
    self.socket = new WebSocket(address);
    self.socket.onmessage = ({ data }) => self.#take(JSON.parse(data));
    await new Promise((resolve, reject) => Object.assign(self.socket ?? {}, { onopen: resolve, onerror: reject }));
    return self;
  }

  /** @param {string} method @param {any} params @returns {Promise<any>} */
  ask(method, params) {
    const id = ++this.#lastNumber;
    this.socket?.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve, reject) => this.#underWay.set(id, { resolve, reject }));
  }

  #take({ id, type, result, error, message, method, params }) {
    if (method === 'log.entryAdded') this.onLog.get(params.source.context)?.(params);
    const call = this.#underWay.get(id);
    if (!call) return;
    this.#underWay.delete(id);
    if (type === 'error') call.reject(new Error(`${error}: ${message}`));
    else call.resolve(result);
  }
}
