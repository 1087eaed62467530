/** Administration: keys, policies, the audit log, people's values, erasures. Types are those of the OpenAPI document. */
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
export type AuditCounts = Answer<"countAuditEvents", 200>;
export type AuditKeys = Answer<"listAuditKeys", 200>;
export type KeptContent = Answer<"openKeptContent", 200>;
export type KeptEndUser = Answer<"openKeptEndUser", 200>;
export type Receipt = Schemas["ReceiptAnswer"];
export type SubjectPage = Schemas["SubjectSearchAnswer"];
export type ErasurePreview = Schemas["ErasurePreviewAnswer"];
export type ErasureOrder = Schemas["ErasureOrderAnswer"];
export type ErasureJob = Schemas["ErasureJobAnswer"];
/** A value of a person: as text, or with the type as which alone it was masked. */
export type Value = string | { value: string; type?: string };
/** What to erase: one of `values`, `scopes` and `tenant`; `variants`: other spellings of the values, too. */
export type Erased = { values?: Value[]; scopes?: string[]; tenant?: string; variants?: boolean };

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

  /** How many events there are, by day, action, outcome or actor (`by`). */
  async counts(filters: NonNullable<operations["countAuditEvents"]["parameters"]["query"]>): Promise<AuditCounts> {
    return (await this.#http.json("GET", "/api/v1/audit/counts", undefined, filters)) as AuditCounts;
  }

  /** Open what an event keeps sealed, for a reason that is on record; also needs the role restorer. */
  async content(event: string, reason: string): Promise<KeptContent> {
    return (await this.#http.json("POST", `/api/v1/audit/events/${encodeURIComponent(event)}/content`, { reason })) as KeptContent;
  }

  /** Open the name of the end user that an event keeps, likewise. */
  async endUser(event: string, reason: string): Promise<KeptEndUser> {
    return (await this.#http.json("POST", `/api/v1/audit/events/${encodeURIComponent(event)}/end-user`, { reason })) as KeptEndUser;
  }

  /** The public keys of the log in `items`; the last one signs now. */
  async keys(): Promise<AuditKeys> {
    return (await this.#http.json("GET", "/api/v1/audit/keys")) as AuditKeys;
  }

  /** The newest signed head; `old`: with a proof that the log only grew since that size. */
  checkpoint(query: { old?: number } = {}): Promise<string> {
    return this.#http.text("GET", "/api/v1/audit/checkpoint", undefined, query);
  }

  /** Events with their proofs as JSON Lines: these (100 at most), or all; deploy/verify_audit.py verifies them. */
  proofs(events: string[] = [], query: { since?: string; until?: string } = {}): Promise<string> {
    return this.#http.text("GET", "/api/v1/audit/proofs", undefined, { ...query, event: events });
  }
}

/** Where the values of a person are; needs the role eraser. */
export class Subjects {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** A page of scopes, types, counts and times, never originals; `next` is the cursor of the next. The reason is on record. */
  async search(
    values: Value[],
    reason: string,
    { variants = false, ...query }: { variants?: boolean; limit?: number; cursor?: string } = {},
  ): Promise<SubjectPage> {
    const body = { values: valued(values), variants, reason };
    return (await this.#http.json("POST", "/api/v1/subjects/search", body, query)) as SubjectPage;
  }
}

/** Erasure of originals; needs the role eraser. Receipts have counts, never values. */
export class Erasures {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** What `order` would erase now; nothing is changed. */
  async preview(reason: string, erased: Erased): Promise<ErasurePreview> {
    return (await this.#order(reason, erased, { preview: true })) as ErasurePreview;
  }

  /** Order an erasure of values, of scopes or of a tenant, which the service does in the background. */
  async order(reason: string, erased: Erased): Promise<ErasureOrder> {
    return (await this.#order(reason, erased)) as ErasureOrder;
  }

  /** How far an erasure is, and its signed `receipt` once its `state` is `done`. */
  async get(erasure: string): Promise<ErasureJob> {
    return (await this.#http.json("GET", `/api/v1/erasures/${encodeURIComponent(erasure)}`)) as ErasureJob;
  }

  /** Erase a scope with all its originals, at once. */
  async scope(scope: string): Promise<Receipt> {
    return (await this.#http.json("DELETE", `/api/v1/vault/scopes/${encodeURIComponent(scope)}`)) as Receipt;
  }

  /** Erase the original of one handle, at once. */
  async handle(scope: string, handle: string): Promise<Receipt> {
    const place = `${encodeURIComponent(scope)}/entries/${encodeURIComponent(handle)}`;
    return (await this.#http.json("DELETE", `/api/v1/vault/scopes/${place}`)) as Receipt;
  }

  #order(reason: string, { values, ...rest }: Erased, more: object = {}): Promise<unknown> {
    const body = { reason, ...rest, ...(values && { values: valued(values) }), ...more };
    return this.#http.json("POST", "/api/v1/erasures", body);
  }
}

function valued(values: Value[]): { value: string; type?: string }[] {
  return values.map((value) => (typeof value === "string" ? { value } : value));
}
