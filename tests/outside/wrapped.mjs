// The packages of OpenAI and Anthropic, wrapped by our TypeScript client, against a provider in this process.
import { strict as assert } from "node:assert";
import { createServer } from "node:http";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { NotCoveredError, Sluice, wrap } from "sluice-mcp-client";

const NAME = "John Doe";
const SAID = `I am ${NAME}, call me at once.`;
const TOOLS = ["note", "search"].map((name) => ({
  type: "function",
  function: { name, description: `Of ${NAME}.`, parameters: { type: "object", properties: {} } },
}));
const arrived = [];
let left = 0;

const pieces = (text) => text.match(/[^]{1,3}/g) ?? [];
const heard = (body) => {
  const last = (body.messages ?? (typeof body.input === "string" ? [{ content: body.input }] : body.input)).at(-1);
  return `You said: ${typeof last.content === "string" ? last.content : last.content[0].text}`;
};
const data = (value) => `data: ${JSON.stringify(value)}\n\n`;
const named = (type, rest) => `event: ${type}\n${data({ type, ...rest })}`;

function chat(body) {
  const text = heard(body);
  const args = JSON.stringify({ text, quoted: '"x"' });
  const head = { id: "c", created: 1, model: "m" };
  const calls = (body.tools ?? []).map((tool, index) => ({
    index, id: `call_${index}`, type: "function", function: { name: tool.function.name, arguments: args },
  }));
  if (!body.stream) {
    const message = { role: "assistant", content: calls.length ? null : text, refusal: null };
    if (calls.length) message.tool_calls = calls.map(({ index, ...call }) => call);
    return { ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason: "stop", logprobs: null }] };
  }
  const chunk = (delta, finish = null) =>
    data({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }] });
  if (!calls.length) return [...pieces(text).map((content) => chunk({ content })), chunk({}, "stop"), "data: [DONE]\n\n"];
  const begun = calls.map((call) => chunk({ tool_calls: [{ ...call, function: { ...call.function, arguments: "" } }] }));
  const rest = pieces(args).flatMap((part) =>
    calls.map(({ index }) => chunk({ tool_calls: [{ index, function: { arguments: part } }] })));
  return [...begun, ...rest, chunk({}, "tool_calls"), "data: [DONE]\n\n"];
}

function response(body) {
  const text = heard(body);
  const part = { type: "output_text", text, annotations: [], logprobs: [] };
  const item = { id: "m", type: "message", role: "assistant", status: "completed", content: [part] };
  const whole = { id: "r", object: "response", model: "m", status: "completed", output: [item] };
  if (!body.stream) return whole;
  const at = { item_id: "m", output_index: 0, content_index: 0 };
  return [
    named("response.created", { response: { ...whole, status: "in_progress", output: [] } }),
    ...pieces(text).map((delta) => named("response.output_text.delta", { ...at, delta, logprobs: [] })),
    named("response.output_text.done", { ...at, text, logprobs: [] }),
    named("response.output_item.done", { output_index: 0, item }),
    named("response.completed", { response: whole }),
  ];
}

function message(body) {
  const text = heard(body);
  const whole = { id: "m", type: "message", role: "assistant", model: "m", stop_reason: "end_turn", usage: {} };
  if (!body.stream) return { ...whole, content: [{ type: "text", text }] };
  return [
    named("message_start", { message: { ...whole, content: [] } }),
    named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    ...pieces(text).map((part) => named("content_block_delta", { index: 0, delta: { type: "text_delta", text: part } })),
    named("content_block_stop", { index: 0 }),
    named("message_stop", {}),
  ];
}

const answers = { "/chat/completions": chat, "/responses": response, "/v1/messages": message };
const provider = createServer(async (request, reply) => {
  let body = "";
  for await (const piece of request) body += piece;
  arrived.push(body);
  reply.on("close", () => (left += reply.writableFinished ? 0 : 1));
  if (request.url === "/embeddings") {
    reply.setHeader("content-type", "application/json");
    return reply.end(JSON.stringify({ object: "list", model: "m", data: [{ object: "embedding", index: 0, embedding: [1] }] }));
  }
  const answer = answers[request.url](JSON.parse(body));
  reply.setHeader("x-request-id", "req_1");
  reply.setHeader("content-type", Array.isArray(answer) ? "text/event-stream" : "application/json");
  if (!Array.isArray(answer)) return reply.end(JSON.stringify(answer));
  for (const event of answer) {
    if (reply.destroyed) return;
    reply.write(event);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  reply.end();
});
await new Promise((resolve) => provider.listen(0, "127.0.0.1", resolve));
const baseURL = `http://127.0.0.1:${provider.address().port}`;
const sluice = new Sluice();
const model = wrap(new OpenAI({ baseURL, apiKey: "k" }), sluice, { scope: "wrapped", tools: ["note"] });
const claude = wrap(new Anthropic({ baseURL, apiKey: "k" }), sluice, { scope: "wrapped" });
const asked = { model: "m", messages: [{ role: "user", content: SAID }] };

// Whole answers.
const answer = await model.chat.completions.create({ ...asked, tools: undefined });
assert.equal(answer.choices[0].message.content, `You said: ${SAID}`);
assert.equal(answer._request_id, "req_1");
const made = await model.responses.create({ model: "m", input: SAID, instructions: `Serve ${NAME}.` });
assert.equal(made.output_text, `You said: ${SAID}`);
assert.equal(made.output[0].content[0].text, made.output_text);
const said = await claude.messages.create({ ...asked, max_tokens: 9, system: `Serve ${NAME}.` });
assert.equal(said.content[0].text, `You said: ${SAID}`);
assert.equal((await model.embeddings.create({ model: "m", input: SAID })).data.length, 1);

// Arguments: only the named tool gets originals, whole and streamed.
const check = (calls) => {
  assert.deepEqual(JSON.parse(calls[0]), { text: `You said: ${SAID}`, quoted: '"x"' });
  assert.match(JSON.parse(calls[1]).text, /I am \[PERSON_1\]/);
};
const called = await model.chat.completions.create({ ...asked, tools: TOOLS });
check(called.choices[0].message.tool_calls.map((call) => call.function.arguments));
const calls = ["", ""];
for await (const chunk of await model.chat.completions.create({ ...asked, tools: TOOLS, stream: true })) {
  for (const call of chunk.choices[0].delta.tool_calls ?? []) calls[call.index] += call.function?.arguments ?? "";
}
check(calls);

// Streams: nothing is lost, and what is repeated agrees.
let text = "";
for await (const chunk of await model.chat.completions.create({ ...asked, stream: true })) {
  text += chunk.choices[0].delta.content ?? "";
}
assert.equal(text, `You said: ${SAID}`);
const events = [];
for await (const event of await model.responses.create({ model: "m", input: SAID, stream: true })) events.push(event);
const deltas = events.filter((event) => event.type === "response.output_text.delta").map((event) => event.delta);
assert.equal(deltas.join(""), `You said: ${SAID}`);
assert.equal(events.at(-1).response.output[0].content[0].text, deltas.join(""));
assert.equal(events.find((event) => event.type === "response.output_text.done").text, deltas.join(""));
text = "";
for await (const event of await claude.messages.create({ ...asked, max_tokens: 9, stream: true })) {
  if (event.type === "content_block_delta") text += event.delta.text;
}
assert.equal(text, `You said: ${SAID}`);

// Who stops reading ends the provider's answer.
for await (const _ of await model.chat.completions.create({ ...asked, stream: true })) break;
const until = Date.now() + 5000;
while (!left && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 20));
assert.equal(left, 1);

// Events as JSON, and a source that fails.
async function* broken() {
  yield { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello [PERSON_1]." } };
  throw new RangeError("the model is gone");
}
await assert.rejects(async () => {
  for await (const _ of sluice.restoreEvents(broken(), { family: "messages", scope: "wrapped" })) continue;
}, RangeError);

// What is not covered is refused by name, and nothing that was sent holds the name.
assert.throws(() => model.images, NotCoveredError);
assert.throws(() => model.chat.completions.stream({}), { code: "not_covered" });
assert.throws(() => claude.beta, NotCoveredError);
assert.throws(() => wrap({}), TypeError);
assert.equal(arrived.length, 10);
assert.ok(!arrived.join().includes(NAME));
provider.close();
provider.closeAllConnections();
console.log("all is well");
