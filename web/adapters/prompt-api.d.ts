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
/** responseConstraint: a JSON schema or a regular expression, of a model that was loaded with `grammars`. */
export interface PromptOptions {
  signal?: AbortSignal;
  responseConstraint?: object | RegExp;
}
export interface LanguageModelFactory {
  availability(): Promise<'available'>;
  params(): Promise<{ defaultTopK: number; maxTopK: number; defaultTemperature: number; maxTemperature: number }>;
  create(options?: {
    initialPrompts?: PromptMessage[];
    topK?: number;
    temperature?: number;
    tools?: PromptTool[];
    signal?: AbortSignal;
  }): Promise<PromptModel>;
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
