// Finds the files of the reader that look like a model, before it is loaded. No DOM.

const kGgufMark = 'GGUF';
const kPartOfFolder = /\.(json|safetensors|model|txt|bin|jinja)$/i;

/** @param {File[]} files @returns {Promise<string>} why they are no model; empty if they look like one */
export async function whatIsWrong(files) {
  const names = files.map((file) => file.webkitRelativePath || file.name);
  if (files.length === 1) {
    const [file] = files;
    if ((await textOf(file, 0, kGgufMark.length)) === kGgufMark) return '';
    if (/\.safetensors$/i.test(file.name) && (await textOf(file, 8, 1)) === '{') return '';
    return `"${names[0]}" is no model: a .gguf file, a .safetensors file, or all files of a model's folder can be loaded.`;
  }
  const isFolder = names.some((name) => /(^|\/)(config|manifest)\.json$/.test(name));
  const ggufs = files.filter((file) => /\.gguf$/i.test(file.name));
  if (!isFolder && ggufs.length !== files.length) {
    return `${files.length} files were given, and none of them is config.json or manifest.json, which a model's folder has.`;
  }
  for (const file of ggufs) if ((await textOf(file, 0, kGgufMark.length)) !== kGgufMark) return `"${file.name}" is no GGUF file.`;
  const foreign = files.find((file) => !/\.gguf$/i.test(file.name) && !kPartOfFolder.test(file.name) && file.name.includes('.'));
  return foreign && !isFolder ? `"${foreign.name}" belongs to no model.` : '';
}

const kPeftFiles = ['adapter_config.json', 'adapter_model.safetensors'];

/**
 * Reads picked files as an adapter: a GGUF file, or the two files of a PEFT folder.
 * @param {File[]} files @param {string[]} names of other adapters: such a pair has no name of its own
 * @returns {{name: string, source: File | File[]}} throws a sentence
 */
export function adapterOf(files, names = []) {
  const [file] = files;
  if (files.length === 1 && /\.gguf$/i.test(file.name)) return { name: file.name.replace(/\.gguf$/i, ''), source: file };
  if (files.length === 2 && kPeftFiles.every((name) => files.some((one) => one.name === name))) {
    const folder = file.webkitRelativePath?.split('/').at(-2);
    return { name: folder || freeName('adapter', names), source: files };
  }
  throw new Error(`${files.map(({ name }) => `"${name}"`).join(', ')} is no adapter: choose a .gguf file, or ${kPeftFiles.join(' and ')} together.`);
}

/** @param {File} file @param {number} from @param {number} count */
async function textOf(file, from, count) {
  return String.fromCharCode(...new Uint8Array(await file.slice(from, from + count).arrayBuffer()));
}

/** @param {string} name @param {string[]} names @returns {string} the name, with a number if there is one already */
function freeName(name, names) {
  for (let i = 2, free = name; ; free = `${name} ${i++}`) if (!names.includes(free)) return free;
}
