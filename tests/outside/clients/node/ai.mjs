// Vercel's AI SDK with the providers of OpenAI (chat completions and Responses) and of Anthropic.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { answered, begin, findCustomer, plan, same, tell } from "./asked.mjs";

const openai = createOpenAI({ baseURL: plan.openai, apiKey: plan.key });
const anthropic = createAnthropic({ baseURL: `${plan.anthropic}/v1`, apiKey: plan.key });
const models = {
  chat: () => openai.chat("gpt-5-mini"),
  responses: () => openai.responses("gpt-5-mini"),
  anthropic: () => anthropic("claude-x"),
};
const model = models[plan.family]();
const find_customer = tool({
  description: plan.tool.description,
  inputSchema: z.object({ number: z.number(), name: z.string(), email: z.string(), note: z.string() }),
  execute: async (given) => findCustomer(given),
});
const options = { model, system: plan.system, tools: { find_customer }, stopWhen: stepCountIs(4), maxRetries: 0 };
const messages = [];

async function asked() {
  if (!plan.stream) return generateText({ ...options, messages });
  let failure = null;
  const run = streamText({ ...options, messages, onError: ({ error }) => (failure = error) });
  let text = "";
  for await (const part of run.textStream) text += part;
  if (failure) throw failure;
  const steps = await run.steps;
  same(text, steps.map((step) => step.text).join(""));
  return {
    text: await run.text,
    steps,
    response: await run.response,
    finishReason: await run.finishReason,
    totalUsage: await run.totalUsage,
  };
}

for (const turn of plan.turns) {
  begin();
  messages.push({ role: "user", content: turn });
  const { text, steps, response, finishReason, totalUsage } = await asked();
  messages.push(...response.messages);
  const thoughts = steps.map((step) => step.reasoningText ?? null);
  const ids = steps.map((step) => [step.response.id, step.finishReason]);
  answered(text, { seen: [finishReason, totalUsage.inputTokens, totalUsage.outputTokens, ids, thoughts] });
}
const schema = z.object({ name: z.string(), email: z.string() });
const shaped = await generateObject({ model, schema, prompt: plan.turns[0], maxRetries: 0 });
tell({ shaped: shaped.object });
