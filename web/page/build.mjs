// Gathers the page as static files that any host can serve: `node web/page/build.mjs [--wasm FILE] [--out FOLDER]`.
// Beside index.html lie the page's modules (page/), the libraries of package.json (vendor/), the package (doppler.mjs
// and what it names), doppler_core.wasm and the model that Doppler ships. Nothing is bundled: the page's sources are
// what runs.
import { copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const page = dirname(fileURLToPath(import.meta.url));
const web = dirname(page);
const root = dirname(web);

const kVendor = [
  ['marked/lib/marked.esm.js', 'marked.mjs'],
  ['dompurify/dist/purify.es.mjs', 'purify.mjs'],
  ['@highlightjs/cdn-assets/es/highlight.min.js', 'highlight.mjs'],
  ['katex/dist/katex.mjs', 'katex.mjs'],
  ['katex/dist/katex.min.css', 'katex.min.css'],
  ['@mlc-ai/web-xgrammar/lib/index.js', 'xgrammar.js'],
];
const kLicences = ['marked/LICENSE', 'dompurify/LICENSE', '@highlightjs/cdn-assets/LICENSE', 'katex/LICENSE'];
// The places where a build leaves the core: of the preset `wasm`, and of the tests.
const kWasm = ['build/wasm/src/web/doppler_core.wasm', 'build/release/wasm/src/web/doppler_core.wasm'];

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
if (kVendor.some(([from]) => !existsSync(join(libraries, from)))) stop('The libraries of the page are missing. Run: tools/setup wasm');

const { out } = values;
rmSync(out, { recursive: true, force: true });
for (const folder of ['page', 'vendor/fonts', 'vendor/licences', 'adapters', 'models']) mkdirSync(join(out, folder), { recursive: true });

/** @param {string} from @param {string} to below `out` */
const copy = (from, to) => copyFileSync(from, join(out, to));
copy(join(page, 'index.html'), 'index.html');
copy(join(page, 'models.json'), 'models.json');
const kPageFiles = /^(?!build\.mjs$).*\.(mjs|js|css|svg)$/;
for (const name of readdirSync(page)) if (kPageFiles.test(name)) copy(join(page, name), join('page', name));
// The package is every module beside it that is not for Node.
const kPackageFiles = /^(?!cli\.mjs$|node\.mjs$|.*_node\.mjs$).*\.mjs$/;
for (const folder of ['', 'adapters']) {
  for (const name of readdirSync(join(web, folder))) if (kPackageFiles.test(name)) copy(join(web, folder, name), join(folder, name));
}
copy(wasm, 'doppler_core.wasm');
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
console.log(`The page is in ${out}.`);
