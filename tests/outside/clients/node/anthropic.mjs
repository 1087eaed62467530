// Anthropic's client for Node: messages with thinking and tools, and the counting of tokens.
import Anthropic from "@anthropic-ai/sdk";
import { answered, begin, findCustomer, plan, same, tell } from "./asked.mjs";

const client = new Anthropic({ baseURL: plan.anthropic, apiKey: plan.key, maxRetries: 0 });
const { name, description, parameters } = plan.tool;
const tools = [{ name, description, input_schema: parameters }];
const thinking = { type: "enabled", budget_tokens: 1024 };
const options = { model: "claude-x", max_tokens: 2048, system: plan.system, tools, thinking };

async function asked(messages) {
  if (!plan.stream) return client.messages.create({ ...options, messages });
  const stream = client.messages.stream({ ...options, messages });
  let text = "";
  stream.on("text", (delta) => (text += delta));
  const whole = await stream.finalMessage();
  const texts = whole.content.filter((block) => block.type === "text").map((block) => block.text);
  same(text, texts.join(""));
  return whole;
}

const messages = [];
for (const turn of plan.turns) {
  begin();
  messages.push({ role: "user", content: turn });
  const seen = [];
  for (;;) {
    const answer = await asked(messages);
    seen.push([answer.id, answer.usage, answer.stop_reason, answer.model]);
    seen.push(...answer.content.map((block) => block.thinking ?? block.type));
    messages.push({ role: "assistant", content: answer.content });
    const uses = answer.content.filter((block) => block.type === "tool_use");
    if (!uses.length) {
      answered(answer.content.at(-1).text, { seen });
      break;
    }
    const result = (use) => ({ type: "tool_result", tool_use_id: use.id, content: findCustomer(use.input) });
    messages.push({ role: "user", content: uses.map(result) });
  }
}
const counted = await client.messages.countTokens({ model: "claude-x", messages, tools, thinking });
tell({ counted: counted.input_tokens });
