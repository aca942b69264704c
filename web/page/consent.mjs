// Asks before a large download and names the model, its size and the place that keeps it.
import { ask } from './ask_view.mjs';
import { merged } from './catalogue.mjs';
import { bytesText } from './format.mjs';

const kLargeBytes = 100 << 20;

/** @param {import('./catalogue.mjs').Entry} entry @param {any} Engine the class Doppler @returns {Promise<boolean>} */
export async function agrees(entry, Engine) {
  if (entry.shipped) return true;
  const models = await Engine.cache.list().catch(() => []);
  const [{ cached }] = merged([entry], [], models, location.href);
  if (cached?.complete) return true;
  // If there is no model, loading says why.
  const bytes = entry.bytes ?? (await Engine.inspect(entry.source).catch(() => null))?.bytes ?? 0;
  const missing = bytes - (cached?.cachedBytes ?? 0);
  if (missing < kLargeBytes) return true;
  return ask({
    title: `Download ${entry.name}?`, yes: 'Download',
    text: `${bytesText(missing)} come from ${hostOf(entry.source)} and are kept in this browser, so that the next time needs no download.`,
  });
}

/** @param {string} source */
function hostOf(source) {
  return /^https?:/.test(source) ? new URL(source).host : 'huggingface.co';
}
