// The public API, as types: what doppler.mjs (browsers) and node.mjs (Node) export. Each sentence here is a promise.
// Read next: docs/howto/browser.md for use, README.md for how the files hang together.
// Words: token, prefill, decode, lane are those of docs/design/glossary.md.

import type { ChatMessage, ChatCreate, Complete, RerankAnswer, RerankRequest } from './requests.d.ts';

export type * from './requests.d.ts';

// ---------------------------------------------------------------------------------------------------------- loading

/** Every failure rejects with such an error; its message says what was given and what is allowed. */
export class DopplerError extends Error {
  constructor(kind: ErrorKind, message: string);
  readonly kind: ErrorKind;
}
/**
 * - `cancelled`: the caller's AbortSignal fired.
 * - `quota`: the browser's storage has no room.
 * - `integrity`: a file is not the one whose hash was given.
 * - `device`: no WebGPU, or the device was lost and could not be made again.
 * - `io`: network or file.
 */
export type ErrorKind =
  'invalid-input' | 'unsupported' | 'out-of-memory' | 'device' | 'io' | 'quota' | 'integrity' | 'cancelled' | 'internal';

/**
 * A model can be
 * - an address: of a .gguf or .safetensors file, or of a folder with config.json (safetensors) or manifest.json (RDRR),
 *   which ends in "/"; relative ones are the page's. The server must answer range requests.
 * - a Hugging Face name: "owner/name" (a folder, or the only fitting .gguf in it), "owner/name:FILE.gguf",
 *   "owner/name:Q4_K_M", each with "@REVISION" after "name" if you want one.
 * - a File or Blob (drop, picker), several Files of one folder, a file or directory handle. In Node: a path too.
 */
export type ModelSource = string | URL | Blob | File[] | FileSystemFileHandle | FileSystemDirectoryHandle;

/** Options that are not here are refused by name, with kind "unsupported". */
export interface LoadOptions {
  progress?: (progress: Progress) => void;
  signal?: AbortSignal;
  /** The adapter; in Node also a GPU object in place of the npm package `webgpu`. */
  device?: DeviceOptions;
  /** Tokens of the context; default: what the model was trained for, at most 4096. */
  ctx?: number;
  /** Kernels: "fast" (default), "exact", "portable", "subgroups", "dp4a". */
  lane?: string;
  /** Format of the cache of keys and values: "f16" (default), "f32" or "q8_0". */
  kv?: 'f16' | 'f32' | 'q8_0';
  /**
   * The drafter, which guesses tokens that the next step checks if that is faster. The text does not change. "lookup"
   * searches the text for its own last tokens, and "next" is the model's next-token layer. "auto" (default) is "next"
   * if the model has it.
   */
  draft?: 'auto' | 'off' | 'lookup' | 'next';
  /** Tokens of a prefill chunk; default 512. */
  chunk?: number;
  /** Jinja text instead of the model's own chat template. */
  chatTemplate?: string;
  /**
   * Requests that are decoded together, 1 (default) to 64: more answers at once for a longer load. With 1 requests take
   * turns. With more, prompts that begin alike share what was evaluated, and a saved session is only its text.
   */
  sequences?: number;
  /** Tokens of all sequences' caches together; default: ctx for each, or what fits the device. */
  poolTokens?: number;
  /**
   * Requests may say what their answer must be (GrammarFields). The npm package `@mlc-ai/web-xgrammar` (0.1.27) is
   * fetched for the first grammar. A browser takes the address of its lib/index.js, Node takes true or a path. Without
   * a worker it may also be the package's module itself. One load serves any number of forms.
   */
  grammars?: boolean | string | URL | object;
  /**
   * Messages may have pictures: the model's vision tower is loaded too. Default false, since a tower takes memory. Of a
   * GGUF model the name of the tower's file beside it ("mmproj-model-f16.gguf").
   */
  images?: boolean | string;
  /**
   * Low-rank adapters (LoRA). All answers have those without a name, added up. If an adapter has a name, or if
   * adapterSlots is set, the model has room for adapters that come later (loadAdapter).
   */
  adapters?: readonly AdapterFile[];
  /** Adapters in GPU memory at a time; default: as many as `adapters` needs, 8 with named ones. */
  adapterSlots?: number;
  /** The largest sum of ranks of one answer's adapters; default: as `adapters` need, or 16. */
  adapterRank?: number;
  /**
   * Pan and scan (Gemma 3): long pictures are read as a whole and in crops. A part's `detail`, "high" or "low", goes
   * before it.
   */
  panAndScan?: boolean;
  /** Bytes of a mixture's experts on the GPU. */
  expertBytes?: number;
  /** Operation -> kernel variant that must be used. */
  kernels?: Record<string, string>;
  /** Keep the model in the browser's storage (OPFS), and read it from there; default true if the browser has OPFS. */
  cache?: boolean;
  /**
   * The SHA-256 that the model's file must have: hexadecimal, or "sha256-" and Base64. A folder takes an object of file
   * names and hashes. The file is read whole, and stored, before any byte of it is used. Another file is an error of
   * kind "integrity".
   */
  integrity?: string | Record<string, string>;
  /**
   * Compare what the kernels compute with the native program, and use others if they compute wrong. Default: in
   * browsers on GPUs, until it passed once there.
   */
  selfTest?: boolean;
  /** Where doppler_core.wasm is, with doppler_core_later.wasm beside it; default: beside doppler.mjs. */
  wasmUrl?: string | URL;
  /** Where worker.mjs is; default: beside doppler.mjs. false: no worker, everything on this thread. */
  workerUrl?: string | URL | false;
  /** In place of https://huggingface.co: a mirror with its paths. */
  hubUrl?: string;
  /** For private models of Hugging Face or another server: headers of every request. */
  headers?: Record<string, string>;
}
/**
 * A low-rank adapter: a GGUF file, or a PEFT folder (adapter_config.json and adapter_model.safetensors). It is named as
 * a model is. It is not kept in the browser's storage.
 */
export interface AdapterFile extends AdapterOptions {
  source: ModelSource;
  /** Answers ask for the adapter by this name; without one all answers have it. */
  name?: string;
}
export interface AdapterOptions {
  /** Times the adapter's own scale; default 1. */
  scale?: number;
  /** Headers of its requests: those of the model do not go to it. */
  headers?: Record<string, string>;
}
export interface DeviceOptions {
  powerPreference?: 'high-performance' | 'low-power';
  /** A GPU object (navigator.gpu's shape) in place of the platform's own; only without a worker. */
  gpu?: unknown;
}

export interface Progress {
  /**
   * "download" is from the network, "upload" from the storage (pieces are verified) or a file to the GPU, "compile" is
   * of kernels.
   */
  phase: 'download' | 'upload' | 'compile' | 'self-test';
  /** Done so far and in all, in bytes; in phase compile, kernels. total is 0 while it is not known. */
  bytes: number;
  total: number;
  /** Bytes (kernels) a second over the last seconds. */
  rate: number;
  /** null: not known yet. */
  secondsLeft: number | null;
}

// ------------------------------------------------------------------------------------------------------------ model

/** A model's events, besides its answers. Each is a CustomEvent. */
export interface DopplerEvents {
  /** The GPU's device was lost; a generation under way goes on. detail: why. */
  devicelost: CustomEvent<string>;
  /** The worker ended by itself; another one begins, and a generation under way goes on. detail: why. */
  workerlost: CustomEvent<string>;
  /** Device and worker are there again. */
  restored: CustomEvent<undefined>;
  /** No worker could be started again: the model is of no use any more. detail: why. */
  failed: CustomEvent<string>;
  /** A sentence for the reader. */
  warning: CustomEvent<string>;
}

/** A loaded model. */
export class Doppler extends EventTarget {
  static load(source: ModelSource, options?: LoadOptions): Promise<Doppler>;
  /**
   * Whether something that looks like a model is there, without loading it: its beginning is read. bytes: of its file;
   * null: not known, of a folder or of a model that is stored. Rejects if there is no model.
   */
  static inspect(source: ModelSource, options?: Pick<LoadOptions, 'headers' | 'hubUrl' | 'signal'>): Promise<{ bytes: number | null }>;
  /** Describes the device that this browser offers, without a model. */
  static probe(options?: Pick<LoadOptions, 'device'>): Promise<DeviceInfo>;
  /** The models in the browser's storage. */
  static readonly cache: ModelCache;

  readonly info: ModelInfo;
  /** OpenAI's shape. Requests that come while another runs wait for their turn, or join it (LoadOptions.sequences). */
  readonly chat: { readonly completions: { create: ChatCreate } };
  complete: Complete;
  /** The vector of a text or of token ids, of a model that gives embeddings. Waits for its turn as requests do. */
  embed(input: string | readonly number[], options?: EmbedOptions): Promise<Embedding>;
  /** Scores texts by how well they answer a query. The model must give scores (ModelInfo). Waits for its turn. */
  rerank(request: RerankRequest): Promise<RerankAnswer>;
  tokenize(text: string, options?: { addSpecial?: boolean; parseSpecial?: boolean }): Promise<number[]>;
  detokenize(tokens: readonly number[]): Promise<string>;
  /** The conversation as the model's chat template writes it. */
  applyChatTemplate(messages: readonly ChatMessage[], options?: { addGenerationPrompt?: boolean }): Promise<string>;
  /**
   * Answers may ask for this adapter by `name` from now on (RequestOptions.adapters). It replaces an adapter of the
   * same name. The model must have room for it (LoadOptions.adapterSlots); it is not loaded again.
   */
  loadAdapter(name: string, source: ModelSource, options?: AdapterOptions & { signal?: AbortSignal }): Promise<AdapterInfo>;
  /**
   * Answers under way keep the adapter, unless the device or the worker is lost meanwhile. Rejects if no adapter has
   * this name.
   */
  unloadAdapter(name: string): Promise<void>;
  /** The adapters with names. */
  adapters(): Promise<AdapterInfo[]>;
  newSession(): Session;
  memory(): Promise<Memory>;
  /** Kernels in use with the better ones that were refused, and why. */
  kernels(): Promise<KernelChoice[]>;
  selfTest(): Promise<SelfTestReport>;
  /** Gives the GPU's memory back and ends the worker; whatever is under way rejects with "cancelled". */
  unload(): Promise<void>;

  addEventListener<K extends keyof DopplerEvents>(type: K, listener: (event: DopplerEvents[K]) => void, options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject | null, options?: boolean | AddEventListenerOptions): void;
  removeEventListener<K extends keyof DopplerEvents>(type: K, listener: (event: DopplerEvents[K]) => void, options?: boolean | EventListenerOptions): void;
  removeEventListener(type: string, listener: EventListenerOrEventListenerObject | null, options?: boolean | EventListenerOptions): void;
}

export interface AdapterInfo {
  name: string;
  /** Where its files are. */
  path: string;
  rank: number;
  scale: number;
}

export interface EmbedOptions {
  /** The first so many, of models that were trained for it. */
  dimensions?: number;
  /** A text that is longer than the context is cut; otherwise it is an error. */
  truncate?: boolean;
  /** The model's own tokens around a text; true unless said. */
  addSpecial?: boolean;
}

export interface Embedding {
  /** Pooled, and of length 1 where the model's files say so. */
  embedding: Float32Array;
  /** That were evaluated. */
  tokens: number;
}

export interface ModelInfo {
  name: string;
  architecture: string;
  synthetic: boolean;
  adapter: string;
  provider: string;
  lane: string;
  /** Requests that are decoded together. */
  sequences: number;
  /** True if requests may say what their answer must be. */
  grammars: boolean;
  /** Numbers of an embedding; 0: the model writes text, or gives scores. */
  embeddingDim: number;
  /** True if the model gives scores (rerank). */
  givesScores: boolean;
  vocabSize: number;
  ctxLen: number;
  trainedCtxLen: number;
  weightBytes: number;
  cacheBytes: number;
  scratchBytes: number;
  loadSeconds: number;
  /** Messages may have pictures. */
  readsImages: boolean;
  /** The room for adapters; 0: there is none. */
  adapterSlots: number;
  /** The largest sum of ranks of one answer's adapters. */
  adapterRank: number;
  hasTokenizer: boolean;
  hasChatTemplate: boolean;
  /** Names of the kernel variants in use. */
  variants: string[];
  /** The self test of this load; null: none was made. */
  selfTest: SelfTestReport | null;
}
/** GPU memory by what holds it, and the memory of this engine's WebAssembly, in bytes. */
export interface Memory {
  weightBytes: number;
  cacheBytes: number;
  scratchBytes: number;
  gpuBytes: number;
  wasmBytes: number;
}
export interface DeviceInfo {
  available: boolean;
  /** Why not, if not. */
  reason: string;
  adapter: string;
  vendor: string;
  architecture: string;
  cpu: boolean;
  features: string[];
  limits: Record<string, number>;
  /** WGSL language features. */
  languageFeatures: string[];
}
export interface KernelChoice {
  operation: string;
  shape: string;
  variant: string;
  refused: { variant: string; reason: string }[];
  /** That could be used too, better ones first. */
  others: string[];
}
export interface SelfTestReport {
  passed: boolean;
  lane: string;
  /** Tiny models, one for each format that the model has. wrong: the kernel without which the answer is right. */
  formats: { format: string; passed: boolean; wrong: string | null }[];
  /** Operation -> the variant that is used in place of a wrong one. */
  replaced: Record<string, string>;
  /** The whole of it with browser and adapter, to copy into a report. */
  text: string;
}

/**
 * A text of its own on the model. Sessions take turns on the GPU, unless the model was loaded for several sequences:
 * going from one to another evaluates again what differs, unless it was saved. A request names its session; the same
 * text as `complete` and `chat` give.
 */
export interface Session {
  readonly chat: { readonly completions: { create: ChatCreate } };
  /** Continues the session's text with the prompt. */
  complete: Complete;
  /** Token ids so far, prompts and answers. */
  tokens(): Promise<number[]>;
  /** A session of its own with the same text. */
  fork(): Session;
  /** Text and cache, for restore() on the same model. */
  save(): Promise<Uint8Array>;
  restore(bytes: Uint8Array): Promise<void>;
  reset(): void;
}

// ------------------------------------------------------------------------------------------------------------ cache

/** Models in the origin's private file system, by piece with hash. Tabs share it: one downloads, all read. */
export interface ModelCache {
  list(): Promise<CachedModel[]>;
  /** Fails while a tab uses the model. */
  delete(id: string): Promise<void>;
  clear(): Promise<void>;
  /** Asks the browser not to clear it by itself; true: it will not. */
  persist(): Promise<boolean>;
  /** The browser's own figures. quotaBytes is a flat figure in some browsers, and no promise. */
  estimate(): Promise<{ usageBytes: number; quotaBytes: number; persisted: boolean }>;
}
export interface CachedModel {
  /** The source given to load(), as an address: load(id) finds it again. */
  id: string;
  files: { url: string; bytes: number; cachedBytes: number }[];
  bytes: number;
  cachedBytes: number;
  complete: boolean;
  /** Milliseconds since 1970. */
  lastUsed: number;
}
