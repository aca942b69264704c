// The public API, second half: requests and their answers, in OpenAI's shapes. doppler.d.ts exports it all.

import type { Session } from './doppler.d.ts';

export interface SamplingOptions {
  max_tokens?: number;
  /** OpenAI's newer name of max_tokens. */
  max_completion_tokens?: number;
  /** 0: greedy. Default 0.8. */
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  repeat_penalty?: number;
  presence_penalty?: number;
  frequency_penalty?: number;
  /** Token id -> added to its logit. */
  logit_bias?: Record<string, number>;
  /** Default: another one each time. */
  seed?: number;
  /** Texts that end the generation and are not part of it. */
  stop?: string | string[];
  ignore_eos?: boolean;
  when_full?: 'stop' | 'slide';
  /**
   * Decode steps of one submit, 1 to 16: small ones show text sooner and end sooner, large ones are faster. Default:
   * what takes about a tenth of a second.
   */
  batch?: number;
  min_tokens?: number;
  top_n_sigma?: number;
  typical_p?: number;
  xtc_probability?: number;
  xtc_threshold?: number;
  dynatemp_range?: number;
  dynatemp_exponent?: number;
  mirostat_tau?: number;
  mirostat_eta?: number;
  dry_multiplier?: number;
  dry_base?: number;
  dry_allowed_length?: number;
  dry_range?: number;
  dry_breakers?: string[];
  /** LoadOptions.draft of this answer. */
  draft?: 'auto' | 'off' | 'lookup' | 'next';
  /** Tokens that a step checks, 2 to 8, even if that is slower. Default: as many as pay. */
  draft_rows?: number;
  /** A text that the answer may repeat: the draft "lookup" searches it too. */
  prediction?: { type: 'content'; content: string | { type: 'text'; text: string }[] } | null;
}
/**
 * The form of an answer, with LoadOptions.grammars. An answer that reaches max_tokens is cut off all the
 * same.
 */
export interface GrammarFields {
  response_format?: ResponseFormat;
  /** A JSON schema, or its text. */
  json_schema?: object | string;
  guided_json?: object | string;
  guided_regex?: string;
  /** One of these texts. */
  guided_choice?: readonly string[];
  /** GBNF, of which the rule "root" is the answer. */
  grammar?: string;
  guided_grammar?: string;
}
/** JSON comes without blanks, except for one after "," and ":". */
export type ResponseFormat = { type: 'text' } | { type: 'json_object' } | { type: 'json_schema'; json_schema: { name?: string; schema: object } };
/** Members that are not here are refused by name, with kind "unsupported". */
export interface RequestOptions extends SamplingOptions, GrammarFields {
  /** Aborting rejects at once with kind "cancelled". */
  signal?: AbortSignal;
  /**
   * Answers to the same prompt, 1 to 128, as choices of one response; not in sessions. Their seeds are seed, seed + 1
   * and so on.
   */
  n?: number;
  /**
   * Adapters (LoRA) of this answer, which are added up: their names, and scales besides their own. An empty list means
   * no adapter. Without a list the answer has the adapters without a name.
   */
  adapters?: readonly { name: string; scale?: number }[];
  stream_options?: { include_usage?: boolean };
  /** Taken, and without effect. */
  user?: string;
  metadata?: Record<string, string>;
  /** Whose cache to go on from; default: the model's own, which keeps what the last request had. */
  session?: Session;
}
export interface ChatMessage {
  role: 'system' | 'developer' | 'user' | 'assistant' | 'tool' | (string & {});
  /** A list: its texts and pictures follow each other. */
  content?: string | readonly ContentPart[] | null;
  /** The calls of an answer that called tools. */
  tool_calls?: readonly ToolCall[];
  /** For role "tool": the call whose result this is. */
  tool_call_id?: string;
  name?: string;
}
/**
 * A picture needs a model that was loaded with the option images. OpenAI's part has an address: a data URL, or one that
 * the page may fetch. A browser decodes files. Node takes pixels: RGB or RGBA, row by row. `detail` "high" turns pan
 * and scan on in models that have it (Gemma 3), and "low" turns it off.
 */
export type ContentPart =
  | { type: 'text'; text: string }
  | { type: 'image_url'; image_url: string | { url: string; detail?: string } }
  | { type: 'image'; image: string | URL | Blob | ImageBitmap | { width: number; height: number; data: Uint8Array | Uint8ClampedArray }; detail?: string };
export interface ToolCall {
  id: string;
  type: 'function';
  /** arguments: JSON text, as the model wrote it. */
  function: { name: string; arguments: string };
}
export interface Tool {
  type: 'function';
  /** parameters: a JSON schema. */
  function: { name: string; description?: string; parameters?: object; strict?: boolean | null };
}
/** Reasoning is told apart from the answer, and calls of tools from both, by the marks of the model's chat template. */
export interface ChatRequest extends RequestOptions {
  messages: readonly ChatMessage[];
  /** Texts that the answer may draw on, for chat templates that know them. */
  documents?: readonly Record<string, unknown>[];
  /** The answer goes on from a last message of the role "assistant", whose text is not repeated. */
  continue_final_message?: boolean;
  /** False: the template does not open an answer. Refused as true together with continue_final_message. */
  add_generation_prompt?: boolean;
  /** The tools that the model may call. */
  tools?: readonly Tool[];
  /** "required" and a name: the answer begins as a call; of formats that are known. */
  tool_choice?: 'auto' | 'none' | 'required' | { type: 'function'; function: { name: string } };
  /** Further variables of the chat template, such as enable_thinking. */
  chat_template_kwargs?: Record<string, unknown>;
  reasoning_effort?: string;
  /** False: a second call is left out of the answer. */
  parallel_tool_calls?: boolean;
  stream?: boolean;
  model?: string;
  /**
   * Gives the log-probability of each token, and with top_logprobs those of 0 to 20 best tokens. A stream gives them
   * in its last chunk.
   */
  logprobs?: boolean;
  top_logprobs?: number;
}
export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: number[];
}
export interface ChatLogprobs {
  content: (TokenLogprob & { top_logprobs: TokenLogprob[] })[];
}
export interface CompletionLogprobs {
  tokens: string[];
  token_logprobs: number[];
  top_logprobs: Record<string, number>[];
  text_offset: number[];
}
export interface CompletionRequest extends RequestOptions {
  /** Text, or token ids. */
  prompt: string | readonly number[];
  stream?: boolean;
  model?: string;
  /** Gives log-probabilities of each token, and of so many best ones. A stream gives them in its last chunk. */
  logprobs?: number;
  /** Put the model's begin-of-text token before a text; default true. */
  add_special?: boolean;
}
export interface ChatCreate {
  (request: ChatRequest & { stream: true }): Promise<Streamed<ChatChunk>>;
  (request: ChatRequest & { stream?: false }): Promise<ChatCompletion>;
  (request: ChatRequest): Promise<ChatCompletion | Streamed<ChatChunk>>;
}
export interface Complete {
  (request: CompletionRequest & { stream: true }): Promise<Streamed<CompletionChunk>>;
  (request: CompletionRequest & { stream?: false }): Promise<Completion>;
  (request: CompletionRequest): Promise<Completion | Streamed<CompletionChunk>>;
}
/**
 * Chunks as they come; the last one has finish_reason, usage and timings. Leaving the loop early ends the generation,
 * and so does cancel(), after which the last chunk still comes, with finish_reason "cancelled".
 */
export interface Streamed<Chunk> extends AsyncIterable<Chunk> {
  cancel(): void;
}
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'cancelled';
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  /** The numbers of right and wrong guesses. Absent if no token was guessed. */
  completion_tokens_details?: { accepted_prediction_tokens: number; rejected_prediction_tokens: number };
}
export interface Timings {
  /** From the call to the first token. */
  ttft_seconds: number;
  /** Prompt tokens that were not found in the cache. */
  evaluated_tokens: number;
  prefill_tokens_per_second: number;
  decode_seconds: number;
  decode_tokens_per_second: number;
  /** The number of guessed tokens, and then that of right guesses. */
  drafted_tokens: number;
  accepted_tokens: number;
  /** The number of times that memory went to another request and its contents were evaluated again. */
  preemptions: number;
}
/** Counters of the device since the model was loaded. */
export interface Counters {
  submits: number;
  dispatches: number;
  readback_bytes: number;
  objects_created_after_load: number;
}
interface Answer {
  /** Generated token ids, the end token included; those of a chunk came with it, and their text may come later. */
  tokens: number[];
  id: string;
  /** Seconds since 1970. */
  created: number;
  model: string;
}
interface Figures {
  usage: Usage;
  timings: Timings;
  counters: Counters;
}
export interface ChatCompletion extends Answer, Figures {
  object: 'chat.completion';
  choices: {
    index: number;
    message: { role: 'assistant'; content: string; reasoning_content?: string; tool_calls?: ToolCall[] };
    logprobs?: ChatLogprobs;
    finish_reason: FinishReason;
  }[];
}
/** id, type and name come once, arguments piece by piece. */
export interface ToolCallDelta {
  index: number;
  id?: string;
  type?: 'function';
  function: { name?: string; arguments: string };
}
export interface ChatChunk extends Answer, Partial<Figures> {
  object: 'chat.completion.chunk';
  choices: {
    index: number;
    logprobs?: ChatLogprobs;
    delta: { role?: 'assistant'; content?: string; reasoning_content?: string; tool_calls?: ToolCallDelta[] };
    finish_reason: FinishReason | null;
  }[];
}
export interface Completion extends Answer, Figures {
  object: 'text_completion';
  choices: { index: number; text: string; logprobs?: CompletionLogprobs; finish_reason: FinishReason }[];
}
export interface CompletionChunk extends Answer, Partial<Figures> {
  object: 'text_completion';
  choices: { index: number; text: string; logprobs?: CompletionLogprobs; finish_reason: FinishReason | null }[];
}

/** As the server's /v1/rerank takes it. Members that are not here are refused by name, with kind "unsupported". */
export interface RerankRequest {
  query: string;
  /** 1 to 2048. */
  documents: readonly (string | { text: string })[];
  /** The number of results; default: all. */
  top_n?: number;
  /** Results have their texts. */
  return_documents?: boolean;
  /** The name in the answer; default: the model's own. */
  model?: string;
  /** Aborting rejects at once with kind "cancelled". */
  signal?: AbortSignal;
  /** Taken, and without effect. */
  user?: string;
}
export interface RerankAnswer {
  object: 'list';
  model: string;
  /** The best first. */
  results: RerankResult[];
  usage: { prompt_tokens: number; total_tokens: number };
}
export interface RerankResult {
  /** The text's place in `documents`. */
  index: number;
  /** 0 to 1. */
  relevance_score: number;
  document?: { text: string };
}
