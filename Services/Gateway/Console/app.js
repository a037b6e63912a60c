// SPDX-License-Identifier: Apache-2.0

// Signs in, and shows the page that the address names. Addresses stand behind `#`, which no server and no log sees: names of
// people are in them.

import { holder, isDemo, may, signIn, signOut } from "./api.js";
import { h, say, visible } from "./dom.js";
import { actPage, actsPage } from "./act.js";
import { commandPage } from "./command.js";
import { homePage } from "./home.js";
import { lettersPage } from "./letters.js";
import { nowPage } from "./now.js";
import { personPage } from "./person.js";

const main = document.getElementById("main");
let leaving = new AbortController();

/** A further page is a further entry: what stands behind `#/`, its title, and what makes it. */
const pages = {
  "": ["IdentityBus", () => homePage()],
  person: ["Person", ([id], signal) => personPage(id, signal), "support"],
  command: ["Command", ([id, source], signal) => commandPage(id, source, signal), "support"],
  now: ["Now", () => nowPage()],
  letters: ["Dead letters", (_, signal) => lettersPage(signal)],
  do: ["Do", ([name], _, query) => name ? actPage(name, query) : actsPage()],
};

async function show() {
  if (!location.hash.startsWith("#/") && location.hash) return;
  leaving.abort();
  leaving = new AbortController();
  const {signal} = leaving;
  const isHome = /^(#\/)?$/.test(location.hash);
  for (const part of document.querySelectorAll("nav, header ib-search, #out")) part.hidden = !holder;
  document.querySelector("header ib-search").hidden ||= isHome;
  if (!holder) return settle("Sign in", [signInForm()]);
  const [path, query] = location.hash.slice(2).split("?");
  const [name, ...rest] = path.split("/").map(decoded);
  const [title, make, scope] = pages[name] ?? ["No such page", () => [h("h1", {tabindex: "-1"}, "There is no such page")]];
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.querySelector("header ib-search").know(name === "person" || name === "command" ? rest[0] : "");
  main.setAttribute("aria-busy", "true");
  try {
    const parts = scope && !may(scope) ? mayNot(title, scope) : await make(rest, signal, query);
    if (!signal.aborted) settle(rest[0] && name !== "do" ? `${rest[0]}, ${title}` : title, parts);
  } catch (failure) {
    if (signal.aborted) return;
    settle(title, failed(title, failure));
  }
}

function settle(title, parts) {
  main.replaceChildren(...parts.flat(Infinity).filter(Boolean));
  main.removeAttribute("aria-busy");
  document.title = `${visible(title)} – IdentityBus`;
  scrollTo(0, 0);
  say(`${title}.`);
  (main.querySelector("ib-search input") ?? main.querySelector("h1") ?? main).focus({preventScroll: true});
}

function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

const mayNot = (title, scope) => [h("h1", {tabindex: "-1"}, title),
  h("p.notice.bad", `This key may not read about people: it lacks the scope ${scope}.`)];

function failed(title, failure) {
  if (failure.status === 401) {
    signOut();
    queueMicrotask(show);
  }
  return [h("h1", {tabindex: "-1"}, title), h("section.card", h("h2", "This could not be shown"),
    h("p.notice.bad", {role: "alert"}, failure.message),
    h("p.quiet", failure.code && `reason ${failure.code}`, failure.ref && `, request ${failure.ref}`),
    h("button.primary", {type: "button", onclick: show}, "Try again"))];
}

function signInForm() {
  const problem = h("p.notice.bad", {role: "alert", hidden: true});
  const field = h("input", {id: "key", name: "key", type: "password", required: true, autocomplete: "off", spellcheck: "false",
    "aria-describedby": "key-hint"});
  const submit = async (event) => {
    event.preventDefault();
    problem.hidden = true;
    try {
      await signIn(field.value.trim());
      field.value = "";
      await show();
    } catch (refusal) {
      problem.textContent = visible(refusal.message);
      problem.hidden = false;
      field.focus();
    }
  };
  const use = (key) => h("button", {type: "button", onclick: () => {
    field.value = `${key}.demo-secret-${key}`;
    field.form.requestSubmit();
  }}, `Sign in as ${key}`);
  return h("section.card.sign-in",
    h("h1", {tabindex: "-1"}, "Sign in"),
    h("form", {onsubmit: submit},
      h("div.field", h("label", {for: "key"}, "API key"),
        h("p.quiet", {id: "key-hint"}, "Key id and secret with a full stop between them. It is kept in memory until you leave."),
        field),
      problem,
      h("div.buttons", h("button.primary", {type: "submit"}, "Sign in"))),
    isDemo && h("div.demo", h("p", "This is a demo; its keys are public:"), h("div.buttons",
      ["demo-support", "demo-admin", "support-desk"].map(use))));
}

class Search extends HTMLElement {
  #field;

  connectedCallback() {
    if (this.#field) return;
    const id = "large" in this.dataset ? "search-large" : "search";
    this.#field = h("input", {id, type: "search", required: true, autocomplete: "off", spellcheck: "false", autocapitalize: "off",
      placeholder: "e-mail, external id, install, MPID, …"});
    this.append(h("form", {role: "search", onsubmit: (event) => this.#look(event)},
      h("label.visually-hidden", {for: id}, "Look for any id"), this.#field, h("button.primary", {type: "submit"}, "Look")));
  }

  /** The id that the page is about. */
  know(id) { if (this.#field) this.#field.value = id ?? ""; }

  #look(event) {
    event.preventDefault();
    const address = `#/person/${encodeURIComponent(this.#field.value.trim())}`;
    // The same id again is a wish to see it anew.
    if (location.hash === address) show();
    else location.hash = address;
  }
}

customElements.define("ib-search", Search);
document.getElementById("out").addEventListener("click", () => { signOut(); show(); });
addEventListener("hashchange", show);
show();
