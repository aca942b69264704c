// The core in two modules: doppler_core.wasm, and doppler_core_later.wasm with the functions that few pages need
// (src/web/later.txt). The first one calls these through its table, where placeholders stand: imports that are named by
// their places. The first placeholder that is called loads the second module, which puts its functions in all places.
import { DopplerError } from './errors.mjs';

// The namespaces that tools/split_module.mjs gives.
const kPlaceholders = 'placeholder';
const kFirst = 'primary';
const kBuild = 'doppler.build'; // a section that is equal in two modules of one build (tools/split_module.mjs)

export const kLaterName = 'doppler_core_later.wasm';

/** @param {unknown} error */
const messageOf = (error) => (error instanceof Error ? error.message : String(error));

/** @param {WebAssembly.Module} module */
const buildOf = (module) =>
  String(WebAssembly.Module.customSections(module, kBuild).map((bytes) => new Uint8Array(bytes)));

export class CoreModule {
  /** @type {WebAssembly.Module | null} */ #later = null;
  #read;

  /**
   * @param {WebAssembly.Module} first
   * @param {() => BufferSource} read the second module's bytes, at once
   */
  constructor(first, read) {
    this.first = first;
    this.#read = read;
  }

  /** False: the build made one module of all. */
  static isSplit(module) {
    return WebAssembly.Module.imports(module).some((wanted) => wanted.module === kPlaceholders);
  }

  /**
   * @param {WebAssembly.Imports} imports
   * @param {(error: DopplerError) => void} failed the second module could not be had: the instance cannot go on
   * @returns {Promise<WebAssembly.Instance>}
   */
  async start(imports, failed) {
    let isWhole = false;
    const complete = () => {
      if (isWhole) return;
      try {
        new WebAssembly.Instance(this.later(), { ...imports, [kFirst]: instance.exports });
      } catch (error) {
        failed(/** @type {DopplerError} */ (error));
        throw error;
      }
      isWhole = true;
    };
    const placeholders = Object.fromEntries(WebAssembly.Module.imports(this.first)
      .filter(({ module }) => module === kPlaceholders)
      .map(({ name }) => [name, (...words) => {
        complete();
        return table.get(Number(name))(...words);
      }]));
    const instance = await WebAssembly.instantiate(this.first, { ...imports, [kPlaceholders]: placeholders });
    const table = /** @type {WebAssembly.Table} */ (
      Object.values(instance.exports).find((one) => one instanceof WebAssembly.Table));
    return instance;
  }

  /** The second module, compiled once. */
  later() {
    return (this.#later ??= this.#compiled());
  }

  #compiled() {
    let bytes;
    try {
      bytes = this.#read();
    } catch (error) {
      throw new DopplerError('io', `${kLaterName}, which this needs, could not be loaded: ${messageOf(error)}.`);
    }
    let module;
    try {
      module = new WebAssembly.Module(bytes);
    } catch (error) {
      throw new DopplerError('io', `${kLaterName} is no WebAssembly: ${messageOf(error)}.`);
    }
    if (buildOf(module) === buildOf(this.first)) return module;
    throw new DopplerError('io', `${kLaterName} is of another build than doppler_core.wasm.`);
  }
}
