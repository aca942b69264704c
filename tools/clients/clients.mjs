// openai and ai of npm against the server at the address that is the second argument; the first is the folder that has
// them.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, url] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { default: OpenAI } = await load("openai");
const { generateText, streamText, jsonSchema, tool, Output } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const model = "storyteller";
const most = 200; // tokens: enough for blanks that a grammar lets this model write between arguments
const question = "Is it warm in Rome?";
const messages = [{ role: "user", content: question }];
const places = ["Rome", "Paris"];
const schema = { type: "object", properties: { place: { type: "string", enum: places } }, required: ["place"], additionalProperties: false };

async function tryOpenAI() {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  const whole = await client.chat.completions.create({ model, messages, max_tokens: 8 });
  let text = "";
  for await (const chunk of await client.chat.completions.create({ model, messages, max_tokens: 8, stream: true }))
    text += chunk.choices[0]?.delta?.content ?? "";
  assert.equal(text, whole.choices[0].message.content);
  const tools = [{ type: "function", function: { name: "weather", parameters: schema } }];
  const tool_choice = { type: "function", function: { name: "weather" } };
  const stream = client.chat.completions.stream({ model, messages, max_tokens: most, tools, tool_choice });
  const [call] = (await stream.finalMessage()).tool_calls;
  assert.ok(places.includes(JSON.parse(call.function.arguments).place));
  const response = await client.responses.create({ model, input: question, max_output_tokens: 6 });
  assert.ok(response.output_text);
  await assert.rejects(client.chat.completions.create({ model: "none", messages }), OpenAI.NotFoundError);
}

async function tryAi() {
  const options = { model: createOpenAICompatible({ name: "doppler", baseURL: `${url}/v1`, supportsStructuredOutputs: true })(model),
    prompt: question, maxOutputTokens: most, maxRetries: 0 };
  const whole = await generateText(options);
  const streamed = streamText(options);
  let text = "";
  for await (const piece of streamed.textStream) text += piece;
  assert.equal(text, whole.text);
  assert.equal(whole.usage.outputTokens, most);
  const asked = [];
  const weather = tool({ description: "The weather of a place.", inputSchema: jsonSchema(schema),
    execute: async (input) => { asked.push(input); return "It is warm."; } });
  const called = { ...options, tools: { weather }, toolChoice: { type: "tool", toolName: "weather" } };
  const { toolCalls } = await generateText(called);
  assert.ok(places.includes(toolCalls[0].input.place));
  await streamText(called).consumeStream();
  assert.deepEqual(asked.map((input) => places.includes(input.place)), [true, true]);
  const { output } = await generateText({ ...options, output: Output.object({ schema: jsonSchema(schema) }) });
  assert.ok(places.includes(output.place));
}

await tryOpenAI();
await tryAi();
