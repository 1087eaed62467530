// The OAuth flow of the TypeScript SDK's first generation: node flow1.ts URL PERSON SECONDS
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { z } from "zod";
import { Memory, gone } from "./browsing.ts";

const [url, person, seconds] = process.argv.slice(2) as [string, string, string];
const memory = new Memory(person);
const anything = z.looseObject({});
const connecting = async () => {
  const client = new Client({ name: "tests-v1", version: "1.0.0" }, { capabilities: {} });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: memory });
  try {
    await client.connect(transport);
  } catch (error) {
    if ((error as Error).constructor.name !== "UnauthorizedError") throw error;
    await transport.finishAuth(memory.returned.searchParams.get("code")!);
    return null;
  }
  return { client, transport };
};
const { client, transport } = ((await connecting()) ?? (await connecting()))!;
const call = (name: string, context: unknown[], args?: unknown) =>
  client.request({ method: "middleware/invoke", params: { name, context, arguments: args ?? {} } }, anything);
const finish = () => transport.finishAuth(memory.returned.searchParams.get("code")!);
await gone(memory, Number(seconds), call, finish, () => ({ session: transport.sessionId !== undefined }));
await transport.terminateSession();
await client.close();
