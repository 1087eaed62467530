// The TypeScript SDK's second generation: node v2.ts URL KEY MODE, where MODE is legacy or auto
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { z } from "zod";

const [url, key, mode] = process.argv.slice(2) as [string, string, "legacy" | "auto"];
const client = new Client({ name: "tests-v2", version: "1.0.0" }, { versionNegotiation: { mode } });
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
const version = client.getNegotiatedProtocolVersion();
await client.close();
console.log(JSON.stringify({ list, invoked, progress, refused, capabilities, version }));
