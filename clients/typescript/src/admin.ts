/** Administration: keys, policies, the audit log, erasures. Types are those of the OpenAPI document. */
import type { Http, Query } from "./http.js";
import type { components, operations } from "./schema.js";

type Schemas = components["schemas"];
type Answer<Name extends keyof operations, Status extends number> = operations[Name] extends {
  responses: { [status in Status]: { content: { "application/json": infer Value } } };
}
  ? Value
  : never;

export type Key = Schemas["KeyAnswer"];
export type NewKey = Schemas["NewKeyAnswer"];
export type KeyMembers = Partial<Omit<Schemas["KeyBody"], "roles">>;
export type Policy = Answer<"getPolicy", 200>;
export type PolicyChange = Answer<"putPolicy", 200>;
export type AuditEvent = Answer<"listAuditEvents", 200>["items"][number];
export type AuditFilters = NonNullable<operations["listAuditEvents"]["parameters"]["query"]>;
export type Receipt = Schemas["ReceiptAnswer"];

const PAGE = 1000;

async function listed<Item>(http: Http, path: string, most = Infinity, query: Query = {}): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | null | undefined;
  do {
    const limit = Math.min(PAGE, most - items.length);
    const answer = await http.json("GET", path, undefined, { ...query, limit, cursor });
    const page = answer as { items: Item[]; next: string | null };
    items.push(...page.items);
    cursor = page.next;
  } while (cursor != null && items.length < most);
  return items;
}

/** API keys; needs the role key-custodian. */
export class Keys {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  list(query: { tenant?: string } = {}): Promise<Key[]> {
    return listed(this.#http, "/api/v1/keys", Infinity, query);
  }

  async get(id: string): Promise<Key> {
    return (await this.#http.json("GET", `/api/v1/keys/${encodeURIComponent(id)}`)) as Key;
  }

  /** Create a key; its secret is in `key`, this once. */
  async create(roles: Schemas["KeyBody"]["roles"], members: KeyMembers = {}): Promise<NewKey> {
    return (await this.#http.json("POST", "/api/v1/keys", { roles, ...members })) as NewKey;
  }

  /** Give a key a new secret; the old one works for `overlap_s` seconds. */
  async rotate(id: string, members: { overlap_s?: number } = {}): Promise<NewKey> {
    return (await this.#http.json("POST", `/api/v1/keys/${encodeURIComponent(id)}/rotate`, members)) as NewKey;
  }

  async approve(id: string): Promise<Key> {
    return (await this.#http.json("POST", `/api/v1/keys/${encodeURIComponent(id)}/approve`)) as Key;
  }

  async revoke(id: string): Promise<Key> {
    return (await this.#http.json("DELETE", `/api/v1/keys/${encodeURIComponent(id)}`)) as Key;
  }
}

/** A tenant's policy; needs the role operator. */
export class Policies {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  async get(query: { tenant?: string } = {}): Promise<Policy> {
    return (await this.#http.json("GET", "/api/v1/policies", undefined, query)) as Policy;
  }

  /** Store the next version; with `expected_version` only over that one. */
  async replace(policy: object, query: { tenant?: string; expected_version?: number } = {}): Promise<PolicyChange> {
    return (await this.#http.json("PUT", "/api/v1/policies", policy, query)) as PolicyChange;
  }

  /** Store the next version, with what `patch` names changed. */
  async change(patch: object, query: { tenant?: string; expected_version?: number } = {}): Promise<PolicyChange> {
    return (await this.#http.json("PATCH", "/api/v1/policies", patch, query)) as PolicyChange;
  }

  versions(query: { tenant?: string } = {}): Promise<Policy[]> {
    return listed(this.#http, "/api/v1/policies/versions", Infinity, query);
  }
}

/** The audit log; needs the role auditor. */
export class Audit {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** At most `most` events, newest first. */
  events({ most = 1000, ...filters }: Omit<AuditFilters, "limit" | "cursor"> & { most?: number } = {}): Promise<AuditEvent[]> {
    return listed(this.#http, "/api/v1/audit/events", most, filters);
  }
}

/** Erasure of originals; needs the role eraser. Each returns a receipt with counts, never values. */
export class Erasures {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  async value(value: string): Promise<Receipt> {
    return (await this.#http.json("POST", "/api/v1/vault/erasures", { value })) as Receipt;
  }

  async scope(scope: string): Promise<Receipt> {
    return (await this.#http.json("DELETE", `/api/v1/vault/scopes/${encodeURIComponent(scope)}`)) as Receipt;
  }

  async handle(scope: string, handle: string): Promise<Receipt> {
    const place = `${encodeURIComponent(scope)}/entries/${encodeURIComponent(handle)}`;
    return (await this.#http.json("DELETE", `/api/v1/vault/scopes/${place}`)) as Receipt;
  }
}
