// A person with a browser: signs in where an authorization request leads, and comes back to the client.
export const CALLBACK = "http://127.0.0.1:9/callback";

/** Follows the address of an authorization request as a browser does, cookies included; returns where it led back to. */
export const signedIn = async (address: URL, person: string): Promise<URL> => {
  const cookies = new Map<string, string>();
  let place = new URL(address);
  place.searchParams.set("login_hint", person);
  while (!place.href.startsWith(CALLBACK)) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(place, { redirect: "manual", headers: { cookie } });
    for (const line of answer.headers.getSetCookie()) {
      const [pair] = line.split(";");
      const at = pair!.indexOf("=");
      cookies.set(pair!.slice(0, at), pair!.slice(at + 1));
    }
    const next = answer.headers.get("location");
    if (next === null) throw new Error(`${answer.status} at ${place.pathname}: ${await answer.text()}`);
    place = new URL(next, place);
  }
  return place;
};

/** What a client keeps of its registration and its tokens, and whom it asks to sign in: for both generations. */
export class Memory {
  client: any;
  kept: any;
  found: any;
  verifier = "";
  returned = new URL(CALLBACK);
  asked: { scope: string | null; resource: string | null; method: string | null; state: string | null }[] = [];
  saved = 0;
  person: string;

  constructor(person: string) {
    this.person = person;
  }

  get redirectUrl() {
    return CALLBACK;
  }

  get clientMetadata() {
    return {
      client_name: "tests",
      redirect_uris: [CALLBACK],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }

  state() {
    return `state-${this.asked.length}`;
  }

  clientInformation() {
    return this.client;
  }

  saveClientInformation(client: any) {
    this.client = client;
  }

  tokens() {
    return this.kept;
  }

  saveTokens(tokens: any) {
    this.saved += 1;
    this.kept = tokens;
  }

  saveDiscoveryState(state: any) {
    this.found = state;
  }

  discoveryState() {
    return this.found;
  }

  saveCodeVerifier(verifier: string) {
    this.verifier = verifier;
  }

  codeVerifier() {
    return this.verifier;
  }

  async redirectToAuthorization(address: URL) {
    const of = (name: string) => address.searchParams.get(name);
    this.asked.push({
      scope: of("scope"),
      resource: of("resource"),
      method: of("code_challenge_method"),
      state: of("state"),
    });
    this.returned = await signedIn(address, this.person);
    if (this.returned.searchParams.get("state") !== of("state")) throw new Error("the state is another one");
  }
}

const pause = (seconds: number) => new Promise((done) => setTimeout(done, seconds * 1000));

/**
 * Goes through everything that a client does about tokens, and prints it: signs in, calls, lets its token expire, calls
 * again, asks for more than it may, and signs in for that.
 *
 * `call` invokes a middleware; `finish` ends a sign-in that has come back, and throws what the SDK does.
 */
export const gone = async (
  memory: Memory,
  seconds: number,
  call: (name: string, context: unknown[], args?: unknown) => Promise<any>,
  finish: () => Promise<void>,
  extra: () => Record<string, unknown>,
) => {
  const text = [{ type: "text", text: "Call [PERSON_1]." }];
  const first = await call("pii_restoration", text, { redactions: { PERSON_1: "Jane" } });
  const token = memory.kept.access_token;
  await pause(seconds + 1);
  const second = await call("pii_restoration", text, { redactions: { PERSON_1: "Jane" } });
  const refreshed = memory.kept.access_token !== token;
  const visits = memory.asked.length;
  // The first generation renews a token where it would have to ask for more: without a refresh token it asks.
  memory.kept = { ...memory.kept, refresh_token: undefined };
  let stopped = "";
  let restored;
  try {
    restored = await call("pii_restoration", text, { scope: "a-conversation" });
  } catch (error) {
    stopped = (error as Error).constructor.name;
    await finish();
    restored = await call("pii_restoration", text, { scope: "a-conversation" });
  }
  const { asked, saved } = memory;
  const scope = memory.kept.scope;
  console.log(JSON.stringify({ first, second, refreshed, visits, stopped, restored, asked, saved, scope, ...extra() }));
};
