// SPDX-License-Identifier: Apache-2.0

// Asks the admin port. The key of whoever signed in is kept in this variable and nowhere else: no cookie, no storage.

let secret = null;

/** What is known of the key: `{key, app, scopes, enforces, isMasked}`; `null` while nobody is signed in. */
export let holder = null;

export const isDemo = document.documentElement.dataset.mode === "demo";

/** Why a call has no answer, as a problem of RFC 9457 says it. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? "The gateway does not answer.");
    Object.assign(this, {status, code: problem.code, ref: problem.ref});
  }
}

export async function signIn(key) {
  // A header takes no other characters.
  if (/[^\x21-\x7e]/.test(key)) throw new Refusal(0, {detail: "No key has such characters: type quotes and blanks anew."});
  secret = key;
  holder = await call("GET", "/admin/v1/key");
}

export const may = (scope) => holder.scopes.includes(scope);

/** @throws {Refusal} */
export async function call(method, path, body, {headers, signal} = {}) {
  let response;
  try {
    response = await fetch(path, {
      method, signal, cache: "no-store", credentials: "omit", redirect: "error",
      headers: {Authorization: `Bearer ${secret}`, "Content-Type": "application/json", ...headers},
      body: body && JSON.stringify(body),
    });
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new Refusal(0, {detail: "The gateway cannot be reached."});
  }
  const answer = await response.json().catch(() => ({}));
  // A key that ends signs out.
  if (response.status === 401 && holder) location.reload();
  if (!response.ok) throw new Refusal(response.status, answer);
  // Its command.
  return Object.assign(answer, {ref: response.headers.get("X-Request-Id")});
}

export const explain = (id, source, limit, signal) => call("POST", "/admin/v1/people/resolve", {id, limit, ...source && {source}}, {signal});
