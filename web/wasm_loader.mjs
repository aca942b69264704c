// Starts doppler_core.wasm: its memory, the few WASI functions its C library needs, and the calls that are answered
// later (src/base/host_web.h). Read next: gpu_host.mjs and file_host.mjs, which provide the other imports.

/** The fate of a call; the numbers of HostStatus in src/base/host_web.h. */
export const Status = Object.freeze({ ok: 0, failed: 1, outOfMemory: 2, notThere: 3 });

/** An error with the status that WebAssembly is told. */
export class HostError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The instance's memory and exports, as the hosts use them. */
export class Core {
  /** @type {any} */ exports = null;
  /** Why it cannot go on: it is not entered again. @type {Error | null} */ failure = null;

  /** A view of the memory, valid until WebAssembly runs again. @param {number} at @param {number} count */
  bytes(at, count) {
    return new Uint8Array(this.exports.memory.buffer, at >>> 0, count >>> 0);
  }

  /** @param {number} at @param {number} count */
  text(at, count) {
    return decoder.decode(this.bytes(at, count));
  }

  /** Copies into memory that the callee frees. @param {Uint8Array | string} data @returns {[number, number]} */
  give(data) {
    const bytes = typeof data === 'string' ? encoder.encode(data) : data;
    const at = this.exports.doppler_alloc(bytes.length) >>> 0;
    if (at === 0) throw new HostError(Status.outOfMemory, `WebAssembly has no memory for ${bytes.length} bytes.`);
    this.bytes(at, bytes.length).set(bytes);
    return [at, bytes.length];
  }

  /**
   * Runs `work` and answers the call `ticket` with what it returns (bytes, text or nothing) or throws.
   * @param {number} ticket @param {() => Promise<Uint8Array | string | void>} work
   */
  async answer(ticket, work) {
    let status = /** @type {number} */ (Status.ok);
    /** @type {Uint8Array | string} */ let data = '';
    try {
      data = (await work()) ?? '';
    } catch (error) {
      status = error instanceof HostError ? error.status : Status.failed;
      data = error instanceof Error ? error.message : String(error);
    }
    this.complete(ticket, status, data);
  }

  /** @param {number} ticket @param {number} status @param {Uint8Array | string} data */
  complete(ticket, status, data) {
    if (this.failure) return;
    let given;
    try {
      given = this.give(data);
    } catch (error) {  // too large for WebAssembly: its sentence is not
      status = Status.outOfMemory;
      given = this.give(/** @type {Error} */ (error).message);
    }
    try {
      this.exports.doppler_complete(ticket, status, ...given);
    } catch (error) {
      if (error !== this.failure) throw error; // whose calls were told
    }
  }
}

// WASI error numbers.
const kSuccess = 0;
const kBadDescriptor = 8;
const kNotSeekable = 70;

/** Clock, randomness and lines of text for the console: all the system there is. @param {Core} core */
function wasi(core) {
  let line = '';
  return {
    /** @param {number} clock @param {bigint} precision @param {number} at */
    clock_time_get(clock, precision, at) {
      const milliseconds = clock === 0 ? Date.now() : performance.now();
      new DataView(core.exports.memory.buffer).setBigUint64(at, BigInt(Math.round(milliseconds * 1e6)), true);
      return kSuccess;
    },
    /** @param {number} at @param {number} count */
    random_get(at, count) {
      crypto.getRandomValues(core.bytes(at, count));
      return kSuccess;
    },
    /** @param {number} descriptor @param {number} vectors @param {number} count @param {number} written */
    fd_write(descriptor, vectors, count, written) {
      const view = new DataView(core.exports.memory.buffer);
      let total = 0;
      for (let i = 0; i < count; i++) {
        const length = view.getUint32(vectors + 8 * i + 4, true);
        line += core.text(view.getUint32(vectors + 8 * i, true), length);
        total += length;
      }
      const lines = line.split('\n');
      line = lines.pop() ?? '';
      for (const whole of lines) console.error(whole);
      view.setUint32(written, total, true);
      return kSuccess;
    },
    fd_close: () => kBadDescriptor,
    fd_seek: () => kNotSeekable,
    /** @param {number} code */
    proc_exit(code) {
      throw new Error(`The WebAssembly core stopped with code ${code}.`);
    },
  };
}

/**
 * @param {import('./core_module.mjs').CoreModule} module
 * @param {Core} core filled in here
 * @param {Record<string, Function>} imports the functions dp_*
 * @param {(error: import('./errors.mjs').DopplerError) => void} failed the core cannot go on
 */
export async function start(module, core, imports, failed) {
  const instance = await module.start({ doppler: imports, wasi_snapshot_preview1: wasi(core) }, (error) => {
    core.failure = error;
    failed(error);
  });
  core.exports = instance.exports;
  core.exports._initialize();
}
