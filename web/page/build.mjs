// Gathers the page as static files that any host can serve: `node web/page/build.mjs [--wasm FILE] [--out FOLDER]`. The
// page's modules become one script and its styles a part of index.html, the package (doppler.mjs, its worker, its
// adapters) three; beside them lie the libraries that are fetched when they are first needed (vendor/),
// the core's two modules, the model that Doppler ships, and of each text a compressed copy (.gz), which `doppler web`
// serves. service_worker.js has the list of all that the page needs without a network. The sources run unbundled too:
// that is what tests of single modules do.
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { kLaterName } from '../core_module.mjs';

const page = dirname(fileURLToPath(import.meta.url));
const web = dirname(page);
const root = dirname(web);

// Fetched when they are first needed.
const kVendor = [
  ['@highlightjs/cdn-assets/es/highlight.min.js', 'highlight.mjs'],
  ['katex/dist/katex.mjs', 'katex.mjs'],
  ['katex/dist/katex.min.css', 'katex.min.css'],
  ['@mlc-ai/web-xgrammar/lib/index.js', 'xgrammar.js'],
];
const kBundled = { '../vendor/marked.mjs': 'marked/lib/marked.esm.js', '../vendor/purify.mjs': 'dompurify/dist/purify.es.mjs' };
const kLicences = ['marked/LICENSE', 'dompurify/LICENSE', '@highlightjs/cdn-assets/LICENSE', 'katex/LICENSE'];
const kStyles = ['base.css', 'layout.css', 'chat.css', 'panels.css'];
const kAdapters = ['ai-sdk', 'prompt-api'];
// Where a build leaves the core: the preset `wasm`, and the tests' build of it.
const kWasm = ['build/wasm/src/web/doppler_core.wasm', 'build/release/wasm/src/web/doppler_core.wasm'];
const kTarget = ['chrome121', 'firefox126', 'safari18.2'];
const kCompressed = /\.(html|mjs|js|css|svg|json|webmanifest|wasm|txt)$/;
// Not kept by the service worker: the model is, by the package; licences are read online.
const kOnlineOnly = /^(models\/|vendor\/licences\/|service_worker\.js$|.*\.gz$)/;

/** @param {string} sentence @returns {never} */
function stop(sentence) {
  console.error(`doppler: ${sentence}`);
  process.exit(1);
}

/** The newest of the cores that were built. */
function builtWasm() {
  const built = kWasm.map((path) => join(root, path)).filter((path) => existsSync(path));
  if (built.length === 0) {
    stop('The core is not built for browsers. Run: tools/setup wasm && cmake --preset wasm && cmake --build --preset wasm --target doppler_core');
  }
  return built.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];
}

const { values } = parseArgs({ options: { wasm: { type: 'string' }, out: { type: 'string', default: join(web, 'dist') } } });
const wasm = values.wasm ?? builtWasm();
const libraries = join(web, 'node_modules');
const needed = ['esbuild/package.json', ...kVendor.map(([from]) => from), ...Object.values(kBundled)];
if (needed.some((path) => !existsSync(join(libraries, path)))) stop('The libraries of the page are missing. Run: tools/setup wasm');
const { build } = await import('esbuild');

const { out } = values;
rmSync(out, { recursive: true, force: true });
for (const folder of ['page', 'vendor/fonts', 'vendor/licences', 'adapters', 'models']) mkdirSync(join(out, folder), { recursive: true });

/** @param {string} from @param {string} to below `out` */
const copy = (from, to) => copyFileSync(from, join(out, to));

// ---- Scripts.
const kUsual = /** @type {const} */ ({ bundle: true, format: 'esm', minify: true, target: kTarget, legalComments: 'none', logLevel: 'warning' });
await build({
  ...kUsual, entryPoints: [join(page, 'main.mjs')], outfile: join(out, 'page/main.mjs'), external: ['../doppler.mjs', '../vendor/*'],
  plugins: [{
    name: 'libraries of the page',
    setup: ({ onResolve }) => onResolve({ filter: /^\.\.\/vendor\// }, ({ path }) => (kBundled[path] ? { path: join(libraries, kBundled[path]) } : undefined)),
  }],
});
await build({
  ...kUsual, outdir: out, outbase: web, splitting: true, outExtension: { '.js': '.mjs' }, chunkNames: 'package-[hash]',
  entryPoints: [join(web, 'doppler.mjs'), join(web, 'worker.mjs'), ...kAdapters.map((name) => join(web, `adapters/${name}.mjs`))],
});

// ---- The frame, with what the first paint needs in it.
const hashOf = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const styles = (await build({
  stdin: { contents: kStyles.map((name) => `@import './${name}';`).join('\n'), resolveDir: page, loader: 'css' },
  bundle: true, minify: true, write: false, target: kTarget, logLevel: 'warning',
})).outputFiles[0].text.trim();
const first = (await build({ entryPoints: [join(page, 'first_paint.js')], minify: true, write: false, target: kTarget, logLevel: 'warning' }))
  .outputFiles[0].text.trim();
const frame = readFileSync(join(page, 'index.html'), 'utf8')
  .replace(/ *<link rel="stylesheet"[^>]*>\n/g, '')
  .replace(/ *<script src="page\/first_paint.js"><\/script>\n/, () => `    <style>${styles}</style>\n    <script>${first}</script>\n`)
  .replace("script-src 'self'", () => `script-src 'self' ${hashOf(first)}`)
  .replace("style-src 'self'", () => `style-src 'self' ${hashOf(styles)}`);
writeFileSync(join(out, 'index.html'), frame);

// ---- Everything else.
for (const name of ['models.json', 'manifest.webmanifest']) copy(join(page, name), name);
copy(join(page, 'icon.svg'), 'page/icon.svg');
copy(wasm, 'doppler_core.wasm');
copy(join(dirname(wasm), kLaterName), kLaterName);
for (const [from, to] of kVendor) copy(join(libraries, from), join('vendor', to));
for (const path of kLicences) copy(join(libraries, path), join('vendor/licences', `${path.split('/').at(-2)}.txt`));
copy(join(root, 'LICENSE'), 'vendor/licences/xgrammar.txt'); // the same one, which its package leaves out
const fonts = join(libraries, 'katex/dist/fonts');
for (const name of readdirSync(fonts)) if (name.endsWith('.woff2')) copy(join(fonts, name), join('vendor/fonts', name));
const model = join(root, 'models/storyteller.gguf');
try {
  linkSync(model, join(out, 'models/storyteller.gguf'));
} catch {
  copy(model, 'models/storyteller.gguf'); // another file system
}

// ---- What works offline: every file, named by what it holds.
const files = readdirSync(out, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  .map((entry) => relative(out, join(entry.parentPath ?? entry.path, entry.name))).filter((path) => !kOnlineOnly.test(path)).sort();
const version = createHash('sha256');
for (const path of files) version.update(path).update(readFileSync(join(out, path)));
const worker = readFileSync(join(page, 'service_worker.js'), 'utf8')
  .replace("'VERSION'", () => JSON.stringify(version.digest('hex').slice(0, 16)))
  .replace('/* FILES */', () => files.map((path) => JSON.stringify(path === 'index.html' ? './' : path)).join(', '));
writeFileSync(join(out, 'service_worker.js'), worker);

for (const entry of readdirSync(out, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath ?? entry.path, entry.name);
  if (entry.isFile() && kCompressed.test(path)) writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
}
console.log(`The page is in ${out}.`);
