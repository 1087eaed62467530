// OpenAI's client for Node: chat completions or Responses.
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { answered, begin, findCustomer, plan, same, tell } from "./asked.mjs";

const client = new OpenAI({ baseURL: plan.openai, apiKey: plan.key, maxRetries: 0 });
const model = "gpt-5-mini";
const Customer = z.object({ name: z.string(), email: z.string() });

async function chat(messages) {
  const options = { model, messages, tools: [{ type: "function", function: plan.tool }] };
  if (!plan.stream) return client.chat.completions.create(options);
  const stream = client.chat.completions.stream({ ...options, stream_options: { include_usage: true } });
  let text = "";
  stream.on("content", (delta) => (text += delta));
  const whole = await stream.finalChatCompletion();
  same(text, whole.choices[0].message.content ?? "");
  return whole;
}

async function respond(input) {
  const tools = [{ type: "function", strict: true, ...plan.tool }];
  const include = ["reasoning.encrypted_content"];
  const options = { model, input, tools, instructions: plan.system, store: false, include };
  if (!plan.stream) return client.responses.create(options);
  const stream = client.responses.stream(options);
  const texts = {};
  for await (const event of stream) {
    if (event.type.endsWith(".delta")) {
      const place = event.type.replace(/delta$/, "done") + event.item_id;
      texts[place] = (texts[place] ?? "") + event.delta;
    } else if (event.type.endsWith("text.done") || event.type.endsWith("arguments.done")) {
      same(event.text ?? event.arguments, texts[event.type + event.item_id]);
    }
  }
  return stream.finalResponse();
}

async function turnOfChat(messages, turn, seen) {
  messages.push({ role: "user", content: turn });
  for (;;) {
    const answer = await chat(messages);
    const [{ message, finish_reason }] = answer.choices;
    seen.push([answer.id, answer.usage, finish_reason, answer.model]);
    messages.push(message);
    if (!message.tool_calls?.length) return message.content;
    for (const call of message.tool_calls) {
      const content = findCustomer(JSON.parse(call.function.arguments));
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
  }
}

async function turnOfResponses(items, turn, seen) {
  items.push({ role: "user", content: turn });
  for (;;) {
    const answer = await respond(items);
    seen.push([answer.id, answer.usage, answer.status, answer.instructions]);
    for (const { parsed_arguments, ...item } of answer.output) items.push(item);
    seen.push(...answer.output.filter((item) => item.type === "reasoning").map((item) => item.summary[0].text));
    const calls = answer.output.filter((item) => item.type === "function_call");
    if (!calls.length) return answer.output_text;
    for (const call of calls) {
      const output = findCustomer(JSON.parse(call.arguments));
      items.push({ type: "function_call_output", call_id: call.call_id, output });
    }
  }
}

const takes = plan.family === "chat" ? turnOfChat : turnOfResponses;
const history = plan.family === "chat" ? [{ role: "system", content: plan.system }] : [];
for (const turn of plan.turns) {
  begin();
  const seen = [];
  answered(await takes(history, turn, seen), { seen });
}
const messages = [{ role: "user", content: plan.turns[0] }];
const shape = zodResponseFormat(Customer, "customer");
const parsed = await client.chat.completions.parse({ model, messages, response_format: shape });
tell({ parsed: parsed.choices[0].message.parsed });
