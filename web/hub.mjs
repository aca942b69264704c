// Names of Hugging Face repositories and what they stand for: which file, at which address. The rules are those of
// `doppler pull` (src/store/hub.h); the hub's answers are from a stranger.
import { DopplerError, throwIfAborted } from './errors.mjs';

const kHub = 'https://huggingface.co';
// The choice among several GGUF files if the user names none, best first: the same as of `doppler pull`.
const kUsualQuantisations = ['Q4_K_M', 'Q4_0', 'Q8_0'];
const kShownChoices = 12; // in a sentence
const kName = /^(?<repo>[\w.-]+\/[\w.-]+)(?::(?<selector>[^@]+))?(?:@(?<revision>[\w./-]+))?$/;
const kPeftConfig = 'adapter_config.json'; // what the folder of an adapter has
const kFile = /\.(gguf|safetensors|json)$/i;
const kHost = /^(?:https?:\/\/)?(?:huggingface\.co|hf\.co)\//i; // what the hub is called in addresses
const kPage = /^(?<repo>[\w.-]+\/[\w.-]+)\/(?:blob|tree)\/(?<revision>[^/]+)(?:\/(?<selector>.+))?$/;

/**
 * "owner/name", "owner/name:FILE.gguf", "owner/name:Q4_K_M", each with "@revision", also with the hub's name before it
 * ("hf.co/owner/name"), or as a page's address shows it (".../blob/main/FILE.gguf"); null: it is no such name.
 * @param {string} text @returns {{repo: string, selector: string, revision: string} | null}
 */
export function parseHubName(text) {
  const bare = kHost.test(text) ? text.replace(kHost, '').replace(/[?#].*$/, '').replace(/\/$/, '') : text;
  const groups = kName.exec(bare)?.groups ?? (bare === text ? null : kPage.exec(bare)?.groups);
  if (!groups || text.startsWith('.') || kFile.test(groups.repo)) return null;
  return { repo: groups.repo, selector: groups.selector ?? '', revision: groups.revision ?? 'main' };
}

/**
 * The address of what the name stands for: a .gguf file, or a folder. It holds the commit, so that its bytes never
 * change.
 * @param {{repo: string, selector: string, revision: string}} name
 * @param {import('./files_http.mjs').HttpOptions & {hubUrl?: string, isAdapter?: boolean}} options
 */
export async function resolveHubName({ repo, selector, revision }, { signal, headers, hubUrl = kHub, isAdapter = false }) {
  const hub = hubUrl.replace(/\/$/, '');
  const answer = await fetch(`${hub}/api/models/${repo}/revision/${encodeURIComponent(revision)}`, { signal, headers }).catch((error) => {
    throwIfAborted(signal);
    throw new DopplerError('io', `The hub ${hub} could not be reached: ${error.message}.`);
  });
  if (!answer.ok) {
    const why = [401, 403, 404].includes(answer.status) ? 'it is not there, or only for those with a token' : 'no model list';
    throw new DopplerError('io', `The hub answered ${answer.status} for ${repo}@${revision}: ${why}.`);
  }
  const { sha, siblings } = await answer.json();
  const paths = Array.isArray(siblings) ? siblings.map((entry) => String(entry?.rfilename)) : [];
  if (!/^\w+$/.test(sha) || paths.length === 0) {
    throw new DopplerError('io', `The hub's answer for ${repo} names no commit or no files.`);
  }
  const path = isAdapter && !selector && paths.includes(kPeftConfig) ? '' : chooseFile(repo, paths, selector);
  return `${hub}/${repo}/resolve/${sha}/${path.split('/').map(encodeURIComponent).join('/')}`;
}

/**
 * The path of a GGUF file, or "" for the folder.
 * @param {string} repo
 * @param {string[]} paths
 * @param {string} selector
 */
export function chooseFile(repo, paths, selector) {
  const baseName = (path) => path.slice(path.lastIndexOf('/') + 1);
  // The first part of a split file stands for all parts.
  const ggufs = paths.filter((path) => /\.gguf$/i.test(path) && !/-(?!00001)\d{5}-of-\d{5}\.gguf$/i.test(path)).sort();
  const named = ggufs.find((path) => path === selector || baseName(path) === selector);
  if (named) return named;
  const models = ggufs.filter((path) => !/^mmproj/i.test(baseName(path))); // projectors lie beside models and are none
  // No underscore follows: "q4_k" is another quantisation than "q4_k_m".
  const withQuantisation = (word) => {
    const part = new RegExp(`(^|[-_./])${word.replace(/[^\w]/g, '\\$&')}([-./]|$)`, 'i');
    return models.filter((path) => part.test(path));
  };
  if (selector) {
    const found = withQuantisation(selector);
    if (found.length === 1) return found[0];
    const count = found.length === 0 ? 'no' : 'more than one';
    throw new DopplerError('invalid-input', `"${selector}" is the name or quantisation of ${count} GGUF file in ${repo}; ` +
      `it has: ${shown(found.length ? found : models.length ? models : paths)}.`);
  }
  if (paths.includes('manifest.json') && paths.includes('shard_00000.bin')) return '';
  if (models.length === 0) {
    if (paths.includes('config.json') && paths.some((path) => path.endsWith('.safetensors'))) return '';
    throw new DopplerError('invalid-input',
      `The repository ${repo} has neither a GGUF file nor safetensors with a config.json; it has: ${shown(paths)}.`);
  }
  if (models.length === 1) return models[0];
  for (const usual of kUsualQuantisations) {
    const found = withQuantisation(usual);
    if (found.length === 1) return found[0];
  }
  throw new DopplerError('invalid-input', `${repo} has several GGUF files; name one as ${repo}:FILE or ` +
    `${repo}:QUANTISATION. It has: ${shown(models)}.`);
}

/** @param {string[]} paths */
function shown(paths) {
  const rest = paths.length - kShownChoices;
  return paths.slice(0, kShownChoices).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}
