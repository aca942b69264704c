// A loaded model for Vercel's AI SDK: generateText({ model: aiSdkModel(doppler), ... }).
import type { LanguageModelV3 } from '@ai-sdk/provider';
import type { Doppler } from '../doppler.d.ts';

/** ai 6 and ai 7 take "v3", the default; ai 7 takes "v4" too, without a step between. */
export function aiSdkModel(doppler: Doppler, options?: { specificationVersion?: 'v3' | 'v4' }): LanguageModelV3;
