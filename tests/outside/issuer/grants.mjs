// Grants that oidc-provider leaves to whoever runs it: token exchange (RFC 8693), the assertion of an identity provider
// (ID-JAG), and the token for such an assertion (RFC 7523). Who asks is checked by oidc-provider itself.
import { randomUUID } from "node:crypto";
import { SignJWT, createLocalJWKSet, createRemoteJWKSet, importJWK, jwtVerify } from "jose";

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TYPE = "urn:ietf:params:oauth:token-type";

export const GRANTS = [EXCHANGE, JWT_BEARER];

export const registerGrants = (provider, url, key, trusted) => {
  const { d: _private, ...shown } = key;
  const own = createLocalJWKSet({ keys: [shown] });
  const theirs = trusted ? createRemoteJWKSet(new URL(`${trusted}/jwks`)) : null;
  const used = new Set();

  const signed = async (typ, claims, seconds) =>
    new SignJWT({ ...claims, jti: randomUUID() })
      .setProtectedHeader({ alg: "ES256", kid: key.kid, typ })
      .setIssuer(url)
      .setIssuedAt()
      .setExpirationTime(`${seconds}s`)
      .sign(await importJWK(key, "ES256"));

  const refuse = (context, error) => {
    context.status = 400;
    context.body = { error };
  };

  const exchange = async (context) => {
    const { client, params } = context.oidc;
    let subject;
    try {
      if (params.subject_token_type !== `${TYPE}:access_token`) return refuse(context, "invalid_request");
      subject = (await jwtVerify(params.subject_token, own, { issuer: url, typ: "at+jwt" })).payload.sub;
    } catch {
      return refuse(context, "invalid_grant");
    }
    if (subject === "mallory") return refuse(context, "access_denied");
    const claims = { sub: subject, client_id: client.clientId, scope: params.scope };
    const asked = params.requested_token_type;
    const token =
      asked === `${TYPE}:id-jag`
        ? await signed("oauth-id-jag+jwt", { ...claims, aud: params.audience, resource: params.resource }, 60)
        : await signed("at+jwt", { ...claims, aud: params.resource }, 120);
    const token_type = asked === `${TYPE}:id-jag` ? "N_A" : "Bearer";
    context.body = { access_token: token, issued_token_type: asked, token_type, expires_in: 120 };
  };

  const bearer = async (context) => {
    const { client, params } = context.oidc;
    let claims;
    try {
      const expected = { issuer: trusted, audience: url, typ: "oauth-id-jag+jwt" };
      claims = (await jwtVerify(params.assertion, theirs, expected)).payload;
    } catch {
      return refuse(context, "invalid_grant");
    }
    if (used.has(claims.jti) || claims.resource !== params.resource) return refuse(context, "invalid_grant");
    used.add(claims.jti);
    const own = { sub: claims.sub, client_id: client.clientId, scope: claims.scope, aud: claims.resource };
    context.body = { access_token: await signed("at+jwt", own, 120), token_type: "Bearer", expires_in: 120 };
  };

  const shape = ["subject_token", "subject_token_type", "requested_token_type", "audience", "resource", "scope"];
  provider.registerGrantType(EXCHANGE, exchange, shape);
  provider.registerGrantType(JWT_BEARER, bearer, ["assertion", "resource", "scope"]);
};
