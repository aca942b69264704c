// Keeps the page for times without a network; web/page/build.mjs writes its list. A page that is open stays with the
// files that it began with; the next one has the new ones. Models are not its business: the package keeps them
// (cached_files.mjs).
const kName = `doppler-page-${'VERSION'}`;
const kFiles = [/* FILES */];

const addresses = new Set(kFiles.map((path) => new URL(path, location.href).href));

addEventListener('install', (event) => {
  event.waitUntil((async () => {
    const cache = await caches.open(kName);
    await cache.addAll([...addresses].map((address) => new Request(address, { cache: 'reload' })));
    await skipWaiting();
  })());
});

addEventListener('activate', (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) if (name.startsWith('doppler-page-') && name !== kName) await caches.delete(name);
    await clients.claim();
  })());
});

addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method !== 'GET' || request.headers.has('Range')) return;
  const address = request.url.split(/[?#]/)[0];
  const isPage = request.mode === 'navigate' && new URL('./', location.href).href === address;
  if (isPage || addresses.has(address)) event.respondWith(answerTo(request, address));
});

/**
 * The network's answer, if it gives one, so that a new build is seen at once.
 * @param {Request} request @param {string} address
 */
async function answerTo(request, address) {
  const kept = async () => (await caches.open(kName)).match(address);
  try {
    const answer = await fetch(request);
    if (answer.ok) return answer;
    return (await kept()) ?? answer;
  } catch (error) {
    const found = await kept();
    if (found) return found;
    throw error;
  }
}
