// An MCP host on the TypeScript SDK of either generation: node host.ts GENERATION MODE, where GENERATION is 1 or 2 and
// MODE is legacy or auto; standard input has {"target": {"url", "key"} | {"command", "args", "env"}, "operations": [...]}.
// It prints what each operation gave, in their order.
import { text } from "node:stream/consumers";

const [generation, mode] = process.argv.slice(2) as ["1" | "2", "legacy" | "auto"];
const { target, operations } = JSON.parse(await text(process.stdin));
const information = { name: "tests-host", version: "1.0.0" };

async function sdk(): Promise<{ client: any; Http: any; Stdio: any }> {
  if (generation === "1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    return { client: new Client(information), Http: StreamableHTTPClientTransport, Stdio: StdioClientTransport };
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const client = new Client(information, { versionNegotiation: { mode } });
  return { client, Http: StreamableHTTPClientTransport, Stdio: StdioClientTransport };
}

const { client, Http, Stdio } = await sdk();
const headers = { Authorization: `Bearer ${target.key}` };
await client.connect(
  target.url === undefined ? new Stdio({ ...target, stderr: "ignore" }) : new Http(new URL(target.url), { requestInit: { headers } }),
);

async function pages(list: (params: object) => Promise<any>, member: string): Promise<object> {
  const found = [];
  let cursor: string | undefined;
  do {
    const page = await list(cursor === undefined ? {} : { cursor });
    found.push(...page[member]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return { [member]: found };
}

async function done(method: string, params: any): Promise<any> {
  const progress: unknown[] = [];
  const onprogress = ({ progress: step, total }: any) => progress.push([step, total]);
  switch (method) {
    case "tools/list":
      return pages((one) => client.listTools(one), "tools");
    case "prompts/list":
      return pages((one) => client.listPrompts(one), "prompts");
    case "resources/list":
      return pages((one) => client.listResources(one), "resources");
    case "resources/templates/list":
      return pages((one) => client.listResourceTemplates(one), "resourceTemplates");
    case "tools/call": {
      const options = { onprogress };
      const result = await (generation === "1" ? client.callTool(params, undefined, options) : client.callTool(params, options));
      return { ...result, progress };
    }
    case "prompts/get":
      return client.getPrompt(params);
    case "resources/read":
      return client.readResource(params);
    case "completion/complete":
      return client.complete(params);
    default:
      throw new Error(`no such operation: ${method}`);
  }
}

const answers = [];
for (const { method, params } of operations) {
  try {
    answers.push({ result: await done(method, params) });
  } catch (error) {
    const { code, message, data } = error as { code: number; message: string; data: unknown };
    answers.push({ error: { code, message, data } });
  }
}
await client.close();
console.log(JSON.stringify(answers));
