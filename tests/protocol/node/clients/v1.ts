// The TypeScript SDK's first generation: node v1.ts URL KEY
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { z } from "zod";

const [url, key] = process.argv.slice(2) as [string, string];
const client = new Client({ name: "tests-v1", version: "1.0.0" }, { capabilities: { sampling: {} } });
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${key}` } },
});
await client.connect(transport);

const anything = z.looseObject({});
const list = await client.request({ method: "middleware/list" }, anything);
const context = [{ type: "text", text: "Grüße 😀" }, { type: "unheard_of", kept: [null, 1.5] }];
const progress: number[] = [];
const invoked = await client.request(
  { method: "middleware/invoke", params: { name: "timestamp_injector", context } },
  anything,
  { onprogress: (told) => progress.push(told.progress) },
);
let refused: { code?: number; data?: unknown } = {};
try {
  await client.request({ method: "middleware/invoke", params: { name: "nothing", context: [] } }, anything);
} catch (error) {
  const { code, data } = error as { code: number; data: unknown };
  refused = { code, data };
}
const capabilities = client.getServerCapabilities();
const session = transport.sessionId;
await transport.terminateSession();
await client.close();
console.log(JSON.stringify({ list, invoked, progress, refused, capabilities, session: session !== undefined }));
