// A loaded model in the shape of Chrome's Prompt API: `const LanguageModel = promptApiModel(doppler)`.
import type { Doppler } from '../doppler.d.ts';

export type PromptInput = string | PromptMessage[];
export interface PromptMessage {
  role: 'system' | 'user' | 'assistant';
  content: string | { type: 'text'; value: string }[];
}
/** The model calls execute() by itself, with arguments that it wrote; its chat template must know tools. */
export interface PromptTool {
  name: string;
  description?: string;
  /** A JSON schema of the arguments. */
  inputSchema?: object;
  execute(args: any): unknown;
}
/**
 * responseConstraint: a JSON schema or a regular expression without flags, of a model that was loaded with `grammars`.
 * It is never part of the prompt: omitResponseConstraintInput may be true only. Members that are not here are refused
 * by name.
 */
export interface PromptOptions {
  signal?: AbortSignal;
  responseConstraint?: object | RegExp;
  omitResponseConstraintInput?: boolean;
}
export interface PromptExpected {
  type: string;
  /** Taken, and not checked: models do not say which languages they know. */
  languages?: string[];
}
export interface LanguageModelFactory {
  /** "unavailable": the model was unloaded, has no chat template, or something other than text is expected. */
  availability(options?: PromptCreateOptions): Promise<'available' | 'unavailable'>;
  params(): Promise<{ defaultTopK: number; maxTopK: number; defaultTemperature: number; maxTemperature: number }>;
  /** A wish that the model cannot fulfil is a NotSupportedError; other members are refused by name. */
  create(options?: PromptCreateOptions): Promise<PromptModel>;
}
export interface PromptCreateOptions {
  initialPrompts?: PromptMessage[];
  topK?: number;
  temperature?: number;
  tools?: PromptTool[];
  signal?: AbortSignal;
  expectedInputs?: PromptExpected[];
  expectedOutputs?: PromptExpected[];
  /** It hears of no download: the model is loaded. */
  monitor?: (monitor: EventTarget) => void;
}
/** Event: "contextoverflow", when the oldest messages were left out. */
export interface PromptModel extends EventTarget {
  readonly contextUsage: number;
  readonly contextWindow: number;
  readonly topK: number;
  readonly temperature: number;
  oncontextoverflow: ((event: Event) => any) | null;
  prompt(input: PromptInput, options?: PromptOptions): Promise<string>;
  promptStreaming(input: PromptInput, options?: PromptOptions): ReadableStream<string>;
  append(input: PromptInput, options?: { signal?: AbortSignal }): Promise<void>;
  measureContextUsage(input: PromptInput): Promise<number>;
  clone(): Promise<PromptModel>;
  destroy(): void;
}
export function promptApiModel(doppler: Doppler): LanguageModelFactory;
