// SPDX-License-Identifier: Apache-2.0

// Signs in, and shows the page that the address names. Addresses stand behind `#`, which no server and no log sees: names of
// people are in them.

import { holder, isDemo, may, signIn } from "./api.js";
import { busy, h, heading, instead, personAddress, problem, refused, say, typed, value } from "./dom.js";
import { actPage, actsPage } from "./act.js";
import { commandPage } from "./decisions.js";
import { lettersPage, nowPage } from "./deployment.js";
import { personPage } from "./person.js";

const main = document.getElementById("main");
const search = searchBox("search");
let leaving = new AbortController();

/** A further page is a further entry: what stands behind `#/`, its title, what makes it, and the scope that it needs. */
const pages = {
  __proto__: null,
  "": ["Who is it about?", () => homePage()],
  person: ["Person", ({path: [id], signal}) => personPage(id, signal), "support"],
  command: ["Command", ({path: [id, source], signal}) => commandPage(id, source, signal), "support"],
  now: ["Now", ({signal}) => nowPage(signal)],
  letters: ["Dead letters", ({signal}) => lettersPage(signal)],
  do: ["Do", ({path: [name], query}) => name ? actPage(name, query) : actsPage()],
};

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const {signal} = leaving;
  for (const part of document.querySelectorAll("nav, header form, #out")) part.hidden = !holder;
  if (!holder) return settle([signInForm()]);
  const [address, query] = location.hash.slice(2).split("?");
  const [name, ...path] = address.split("/").map(decoded);
  search.hidden = !name || !may("support");
  const [title, make, scope] = pages[name] ?? ["There is no such page", () => [heading("There is no such page")]];
  for (const link of document.querySelectorAll("nav a")) link.ariaCurrent = link.hash === `#/${name}` ? "page" : null;
  search.elements.search.value = scope && !holder.isMasked && path[0] || "";
  main.setAttribute("aria-busy", "true");
  try {
    const parts = scope && !may(scope)
      ? [heading(title), mayNotRead()]
      : await make({path, query, signal});
    // A page that leads on to another one has nothing to show.
    if (!signal.aborted && parts.length) settle(parts);
  } catch (failure) {
    if (!signal.aborted) settle(failed(title, failure));
  }
}

function settle(parts) {
  main.replaceChildren(...parts.flat(Infinity).filter(Boolean));
  main.removeAttribute("aria-busy");
  const first = main.querySelector("h1");
  document.title = `${first.textContent} – IdentityBus`;
  scrollTo(0, 0);
  say(first.textContent);
  (main.querySelector("[type=search]") ?? first).focus({preventScroll: true});
}

function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

const mayNotRead = () => problem("This key may not read about people: it lacks the scope support.");

const failed = (title, failure) => [heading(title), refused("This could not be shown", failure),
  h("button.primary", {onclick: show}, "Try again")];

function signInForm() {
  const said = h("div");
  const field = h("input", {...typed, id: "key", type: "password", "aria-describedby": "key-hint"});
  const enter = () => busy(main, async () => {
    said.replaceChildren();
    try {
      await signIn(field.value.trim());
      await show();
    } catch ({message}) {
      said.replaceChildren(problem(message));
      field.focus();
    }
  });
  const use = (key) => h("button", {onclick: () => {
    field.value = `${key}.demo-secret-${key}`;
    field.form.requestSubmit();
  }}, `Sign in as ${key}`);
  return h("section.card.sign-in",
    heading("Sign in"),
    h("form", {onsubmit: instead(enter)},
      h("div.field", h("label", {for: "key"}, "API key"),
        h("p.quiet", {id: "key-hint"}, "Key id and secret with a full stop between them. It is kept in memory until you leave."),
        field),
      said,
      h("div.buttons", h("button.primary", "Sign in"))),
    isDemo && [h("p", "This is a demo; its keys are public:"), h("div.buttons",
      ["demo-support", "demo-privacy", "demo-admin", "demo-trainee", "support-desk"].map(use))]);
}

const cases = [
  ["ivan@mail.example", "I see somebody else's orders.", "Ivan's e-mail is in Grace's profile. Take them apart."],
  ["ada", "My phone was stolen. I have my tablet here.", "The tablet waits behind the phone. Make it active."],
  ["lindas-phone", "The shop does not know me in the app.", "Her external id was mistyped when she was linked. Change it."],
];

const homePage = () => [
  h("div.title", heading("Who is it about?")),
  may("support") ? [h("p.quiet", "An e-mail, an external id, a user, an install, a device, an MPID, or the id of a command."),
    searchBox("search-large")] : mayNotRead(),
  isDemo && may("support") && h("section", h("h2", "Three complaints to begin with"),
    h("ol.grid", cases.map(([id, words, hint]) => h("li.card",
      h("p", h("strong", `“${words}”`)), h("p", hint), h("a.button", {href: personAddress(id)}, "Look for ", value(id))))),
    h("p", "Nine more are told in ", h("code", "docs/console.md"), ".")),
  h("p.quiet", "The key ", value(holder.key), " of the app ", value(holder.app), " has the scopes ", holder.scopes.join(", ") || "–",
    holder.isMasked && ", and is shown e-mails, telephone numbers and the like masked", ". What you read or do here is in the log."),
];

/** The same id again is a wish to see it anew. */
function searchBox(id) {
  const field = h("input", {...typed, id, type: "search", placeholder: "any id"});
  const look = () => {
    const address = personAddress(field.value.trim());
    if (location.hash === address) show();
    else location.hash = address;
  };
  return h("form.search", {role: "search", onsubmit: instead(look)},
    h("label.visually-hidden", {for: id}, "Look for any id"), field, h("button.primary", "Look"));
}

document.querySelector(".brand").after(search);
// Nothing of whoever was here stays.
document.getElementById("out").addEventListener("click", () => location.reload());
document.querySelector(".skip").addEventListener("click", instead(() => main.focus()));
addEventListener("hashchange", show);
show();
