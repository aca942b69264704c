// A model on a web server, read by range requests: the address of a .gguf or .safetensors file, or of a folder with
// config.json (ending in "/"). The server must answer ranges.

/** @param {string | URL} address @returns {import('./file_host.mjs').FileAccess} */
export function httpFiles(address) {
  const url = new URL(address, globalThis.location?.href);
  const isFolder = url.pathname.endsWith('/');
  const mainFile = isFolder ? '' : decodeURIComponent(url.pathname.slice(url.pathname.lastIndexOf('/') + 1));
  return {
    files: { root: url.href, mainFile, names: [] },
    open: (name) => openFile(name === mainFile ? url : new URL(encodeURIComponent(name) + url.search, url)),
  };
}

/** @param {URL} url @returns {Promise<import('./file_host.mjs').OpenFile | null>} */
async function openFile(url) {
  // One byte tells the size and that ranges work; HEAD does not tell the latter and is often refused.
  const probe = await fetch(url, { headers: { Range: 'bytes=0-0' } });
  await probe.body?.cancel();
  if (probe.status === 404 || probe.status === 403) return null;
  const total = Number(/\/(\d+)$/.exec(probe.headers.get('Content-Range') ?? '')?.[1]);
  if (probe.status !== 206 || !Number.isSafeInteger(total)) {
    throw new Error(`${url.href} cannot be read in parts: the server answered ${probe.status} to a range request.`);
  }
  return {
    name: url.href,
    size: total,
    close() {},
    async read(offset, count) {
      if (count === 0) return new Uint8Array();
      const answer = await fetch(url, { headers: { Range: `bytes=${offset}-${offset + count - 1}` } });
      if (answer.status !== 206) throw new Error(`${url.href} answered ${answer.status} to a range request.`);
      return new Uint8Array(await answer.arrayBuffer());
    },
  };
}
