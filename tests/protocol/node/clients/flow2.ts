// The OAuth flow of the TypeScript SDK's second generation: node flow2.ts URL PERSON SECONDS MODE, legacy or auto
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { z } from "zod";
import { Memory, gone } from "./browsing.ts";

const [url, person, seconds, mode] = process.argv.slice(2) as [string, string, string, "legacy" | "auto"];
const memory = new Memory(person);
const anything = z.looseObject({});
const connecting = async () => {
  const client = new Client({ name: "tests-v2", version: "1.0.0" }, { versionNegotiation: { mode } });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: memory });
  try {
    await client.connect(transport);
  } catch (error) {
    if ((error as Error).constructor.name !== "UnauthorizedError") throw error;
    await transport.finishAuth(memory.returned.searchParams);
    return null;
  }
  return { client, transport };
};
const { client, transport } = ((await connecting()) ?? (await connecting()))!;
const call = (name: string, context: unknown[], args?: unknown) =>
  client.request({ method: "middleware/invoke", params: { name, context, arguments: args ?? {} } }, anything);
const finish = () => transport.finishAuth(memory.returned.searchParams);
await gone(memory, Number(seconds), call, finish, () => ({ version: client.getNegotiatedProtocolVersion() }));
await client.close();
