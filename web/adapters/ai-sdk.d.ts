// A loaded model for Vercel's AI SDK: generateText({ model: aiSdkModel(doppler), ... }).
import type { LanguageModelV4 } from '@ai-sdk/provider';
import type { Doppler } from '../doppler.d.ts';

export function aiSdkModel(doppler: Doppler): LanguageModelV4;
