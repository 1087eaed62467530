import { createServer } from "node:http";
import { strict as assert } from "node:assert";
import { Sluice, SluiceError, UnreachableError, type AuditEvent, type components } from "sluice-mcp-client";

const sluice = new Sluice();
const scope = "typescript";

// Whole.
const safe = await sluice.redact("I am John Doe and my SSN is 123-45-6789.", { scope });
assert.equal(safe.text, "I am [PERSON_1] and my SSN is [SSN_1].");
assert.deepEqual(safe.redactions.map((one) => one.type), ["person", "ssn"]);
assert.equal((await sluice.restore(safe.text, { scope: safe.scope })).text, "I am John Doe and my SSN is 123-45-6789.");
const talk = await sluice.redact([{ role: "user", content: "I am John Doe." }], { scope });
assert.deepEqual(talk.messages, [{ role: "user", content: "I am [PERSON_1]." }]);
assert.throws(() => talk.text, TypeError);
assert.throws(() => safe.messages, TypeError);
assert.ok((await sluice.listMiddleware()).some((one) => one.name === "pii_redaction" && one.phase === "outbound"));
assert.deepEqual(await sluice.health(), { ready: true });

// Streamed: what is restored comes before the model has ended.
let release = (): void => undefined;
const heard = new Promise<void>((resolve) => (release = resolve));
async function* model(): AsyncGenerator<string> {
  yield "Hello [PER";
  yield "SON_1], how ";
  await heard;
  yield "are you?";
}
let said = "";
for await (const piece of sluice.restoreStream(model(), { scope })) {
  said += piece;
  if (said.startsWith("Hello John Doe")) release();
}
assert.equal(said, "Hello John Doe, how are you?");
for await (const _ of sluice.restoreStream(["one ", "two ", "three "], { scope })) break;
async function* broken(): AsyncGenerator<string> {
  yield "Hello ";
  throw new RangeError("the model is gone");
}
await assert.rejects(async () => {
  for await (const _ of sluice.restoreStream(broken(), { scope })) continue;
}, RangeError);

// Administration, with the types of the document.
const made = await sluice.keys.create(["invoker"], { name: "chat" });
const roles: components["schemas"]["Role"][] = made.roles;
assert.deepEqual(roles, ["invoker"]);
await new Sluice({ key: made.key }).listMiddleware();
await sluice.keys.revoke(made.id);
assert.ok((await sluice.keys.list()).some((key) => key.id === made.id && key.revoked !== null));
const policy = await sluice.policies.get();
const changed = await sluice.policies.change({ limits: {} }, { expected_version: policy.version });
assert.equal(changed.version, policy.version + 1);
const events: AuditEvent[] = await sluice.audit.events({ most: 3 });
assert.equal(events.length, 3);
await sluice.erasures.handle(scope, "SSN_1");
assert.equal((await sluice.restore("[SSN_1]", { scope })).text, "[SSN_1]");
const [values, reason] = [["JOHN  doe"], "Request 2026-114"];
assert.equal((await sluice.subjects.search(values, reason)).scopes, 0);
const page = await sluice.subjects.search(values, reason, { variants: true, limit: 10 });
assert.deepEqual(page.items.map((group) => [group.scope, group.type]), [[scope, "PERSON"]]);
const preview = await sluice.erasures.preview(reason, { values, variants: true });
assert.deepEqual(preview.by_value, page.by_value);
const order = await sluice.erasures.order(reason, { values, variants: true });
let job = await sluice.erasures.get(order.id);
for (const until = Date.now() + 45_000; job.state !== "done" && Date.now() < until; job = await sluice.erasures.get(order.id)) {
  await new Promise((resolve) => setTimeout(resolve, 200));
}
assert.equal(job.receipt?.split("\n")[0], "sluice erasure receipt 1");
assert.equal((await sluice.restore("[PERSON_1]", { scope })).text, "[PERSON_1]");
await sluice.erasures.scope(scope);

// The log: what was stored a moment ago is sealed some seconds later.
const oldest = (await sluice.audit.events({ most: 1000 })).at(-1)?.id ?? "";
let proof: string[] = [];
for (const until = Date.now() + 45_000; proof.length < 2; await new Promise((resolve) => setTimeout(resolve, 200))) {
  assert.ok(Date.now() < until);
  proof = (await sluice.audit.proofs([oldest]).catch(() => "")).trimEnd().split("\n");
}
assert.equal(JSON.parse(JSON.parse(proof[1] ?? "").event).id, oldest.replaceAll("-", ""));
const [origin, size] = (await sluice.audit.checkpoint()).split("\n");
assert.ok((await sluice.audit.keys()).items.at(-1)?.key.startsWith(`${origin}+`));
assert.ok((await sluice.audit.checkpoint({ old: Number(size) })).includes(`${origin}`));
assert.ok((await sluice.audit.counts({ by: ["action"] })).items.length > 0);
await assert.rejects(sluice.audit.content(oldest, "Complaint 2026-114"), { code: "not_found" });
await assert.rejects(sluice.audit.endUser(oldest, "Complaint 2026-114"), { code: "not_found" });

// Errors.
await assert.rejects(sluice.invoke("pii_redaction", "x", { nonsense: 1 }), (error: unknown) => {
  assert.ok(error instanceof SluiceError);
  assert.equal(error.code, "invalid_arguments");
  assert.equal(error.status, 422);
  assert.ok(error.requestId);
  return true;
});
await assert.rejects(new Sluice({ key: made.key }).listMiddleware(), { code: "unauthenticated" });
await assert.rejects(new Sluice({ url: "http://127.0.0.1:1", retries: 0 }).listMiddleware(), UnreachableError);

// What the service did not start is sent again, after the pause that it names.
let asked = 0;
const busy = createServer((_, response) => {
  asked += 1;
  const body = asked === 1 ? { code: "overloaded", title: "Busy" } : { content: ["done"], metadata: {} };
  response.writeHead(asked === 1 ? 503 : 200, { "Retry-After": "0" }).end(JSON.stringify(body));
});
await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve));
const { port } = busy.address() as { port: number };
assert.equal((await new Sluice({ url: `http://127.0.0.1:${port}` }).redact("x")).text, "done");
assert.equal(asked, 2);
busy.close();
busy.closeAllConnections();
console.log("all is well");
