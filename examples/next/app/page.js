// A page of Next.js (App Router): the model is loaded and asked in the browser. The package is imported when the button
// is pressed, so that the server never runs it.
'use client';
import { useRef, useState } from 'react';

export default function Page() {
  const model = useRef(null);
  const [text, setText] = useState('');

  const tell = async () => {
    const { Doppler } = await import('doppler-webgpu');
    model.current ??= Doppler.load('bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M', {
      progress: ({ phase, bytes, total }) => setText(`${phase} ${bytes} of ${total}`),
    });
    const doppler = await model.current;
    let answer = '';
    const stream = await doppler.chat.completions.create({ messages: [{ role: 'user', content: 'Tell a tale of a fox.' }], stream: true });
    for await (const { choices: [{ delta }] } of stream) setText((answer += delta.content ?? ''));
  };
  return <main><button onClick={tell}>Tell a tale</button><p>{text}</p></main>;
}
