// A certified OpenID provider (npm's oidc-provider) on loopback, whose people sign in by being asked.
//
// node issuer.mjs PORT RESOURCE [CONSOLE [TRUSTED]]: prints "ready" once it serves; CONSOLE is the address of a console,
// TRUSTED an identity provider whose assertions are taken. Every sign-in is of the person whom the address of the
// authorization request names as login_hint, else of ada. TOKEN_SECONDS says how long access tokens count.
import Provider from "oidc-provider";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { GRANTS, registerGrants } from "./grants.mjs";

const [port, resource, people = "http://127.0.0.1:9", trusted = ""] = process.argv.slice(2);
const url = `http://127.0.0.1:${port}`;

const newKey = () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { ...privateKey.export({ format: "jwk" }), use: "sig", alg: "ES256", kid: randomBytes(8).toString("hex") };
};

const key = newKey();
const groups = { ada: ["llm-users"], grace: ["llm-users", "auditors"], eve: [], mallory: ["llm-users"] };

const provider = new Provider(url, {
  jwks: { keys: [key] },
  clients: [
    {
      client_id: "backend",
      client_secret: "backend-secret-of-the-tests",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      scope: "use see",
    },
    {
      client_id: "sluice",
      client_secret: "introspection-secret-of-the-tests",
      grant_types: [],
      redirect_uris: [],
      response_types: [],
    },
    {
      client_id: "upstream",
      client_secret: "upstream-secret-of-the-tests",
      grant_types: ["client_credentials", "authorization_code", "refresh_token", ...GRANTS],
      redirect_uris: [`${people}/console/server-grants/callback`],
      response_types: ["code"],
      scope: "use see offline_access",
    },
    {
      client_id: "console",
      client_secret: "console-secret-of-the-tests",
      redirect_uris: [`${people}/console/sign-in/return`],
      backchannel_logout_uri: `${people}/console/logout`,
      backchannel_logout_session_required: true,
    },
  ],
  scopes: ["openid", "offline_access", "groups", "use", "see"],
  claims: { openid: ["sub"], groups: ["groups"] },
  conformIdTokenClaims: false,
  clientDefaults: { id_token_signed_response_alg: "ES256" },
  // Without its dispatcher, which refuses loopback, where all of this is.
  fetch: (url, { dispatcher, ...options }) => globalThis.fetch(url, options),
  cookies: { keys: [randomBytes(16).toString("hex")] },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, groups: groups[id] ?? [] }) }),
  extraTokenClaims: (_context, token) => ({ groups: groups[token.accountId] ?? [] }),
  interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
  pkce: { required: () => true },
  issueRefreshToken: (_context, client) => client.grantTypeAllowed("refresh_token"),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: (_context, client) => client.clientId === "sluice" },
    revocation: { enabled: true },
    backchannelLogout: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, indicator) => ({
        scope: "use see",
        audience: indicator,
        accessTokenTTL: Number(process.env.TOKEN_SECONDS ?? 120),
        accessTokenFormat: indicator.endsWith("/opaque") ? "opaque" : "jwt",
        jwt: { sign: { alg: "ES256" } },
      }),
    },
  },
});

// Clients register with the scopes that they ask for first: here these do not bind them, so that they can step up.
provider.use(async (context, next) => {
  if (context.path === "/reg" && context.method === "POST") {
    const pieces = [];
    for await (const piece of context.req) pieces.push(piece);
    const { scope: _first, ...metadata } = JSON.parse(Buffer.concat(pieces).toString());
    context.req.body = metadata;
  }
  return next();
});

// Sign in whoever is named and grant what the client asked for: the browser's part of the flow.
provider.use(async (context, next) => {
  if (!context.path.startsWith("/interaction/")) {
    return next();
  }
  const { params, prompt, grantId, session } = await provider.interactionDetails(context.req, context.res);
  if (prompt.name === "login") {
    const result = { login: { accountId: params.login_hint ?? "ada" } };
    return provider.interactionFinished(context.req, context.res, result, { mergeWithLastSubmission: false });
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope ?? "");
  for (const asked of [params.resource ?? resource].flat()) {
    grant.addResourceScope(asked, params.scope ?? "");
  }
  const result = { consent: { grantId: await grant.save() } };
  return provider.interactionFinished(context.req, context.res, result, { mergeWithLastSubmission: true });
});

registerGrants(provider, url, key, trusted);
provider.on("backchannel.error", (_context, error) => console.error(error));
provider.on("server_error", (_context, error) => console.error(error));
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
