// A load by the clock, in a page and in Node: how long each phase took that the progress told.

/**
 * @param {any} Doppler the class @param {any} source a model @param {any} options of load()
 * @returns {Promise<{model: any, load: {seconds: number, phases: {phase: string, seconds: number, bytes: number}[]}}>}
 *   bytes: in phase compile, kernels
 */
export async function timedLoad(Doppler, source, options) {
  /** @type {{phase: string, from: number, bytes: number}[]} */ const seen = [];
  const start = performance.now();
  const progress = ({ phase, bytes }) => {
    if (seen.at(-1)?.phase !== phase) seen.push({ phase, from: performance.now(), bytes: 0 });
    /** @type {any} */ (seen.at(-1)).bytes = bytes;
  };
  const model = await Doppler.load(source, { ...options, selfTest: false, progress });
  const end = performance.now();
  // A phase lasts until the next one begins. Before the first the module is compiled and the file's head is read.
  const phases = [{ phase: 'start', from: start, bytes: 0 }, ...seen].map(({ phase, from, bytes }, i) =>
    ({ phase, seconds: ((seen[i]?.from ?? end) - from) / 1000, bytes }));
  return { model, load: { seconds: (end - start) / 1000, phases } };
}

/** Model and device for a report. @param {any} Doppler the class @param {any} model */
export async function describe(Doppler, { info }) {
  const device = await Doppler.probe();
  return { ...info, vendor: device.vendor, cpu: device.cpu };
}
