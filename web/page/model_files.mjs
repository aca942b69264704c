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

/** @param {File} file @param {number} from @param {number} count */
async function textOf(file, from, count) {
  return String.fromCharCode(...new Uint8Array(await file.slice(from, from + count).arrayBuffer()));
}
