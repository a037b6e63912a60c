// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from Services/Gateway/Console.
// swift-format-ignore-file

extension ConsoleFiles {
    static let compiled = [
        File(
            name: "", type: "text/html; charset=utf-8",
            text: #"""
<!doctype html>
<html lang="en" data-mode="plain">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>IdentityBus</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/console/console-cfbc0d7f95.css">
<script type="module" src="/console/app-fb4e7bc2aa.js"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the page</a>
<header class="bar">
<a class="brand" href="#/">Identity<b>Bus</b></a>
<ib-search hidden></ib-search>
<nav aria-label="Pages" hidden>
<a href="#/now">Now</a>
<a href="#/letters">Dead letters</a>
<a href="#/do">Do</a>
</nav>
<button class="small" id="out" type="button" hidden>Sign out</button>
</header>
<main id="main" tabindex="-1"></main>
<p id="said" class="visually-hidden" role="status"></p>
<noscript><p class="card">This page needs JavaScript; <code>identitybus explain</code> does not.</p></noscript>
</body>
</html>
"""#),
        File(
            name: "act-65fbb8232b.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { call, holder, may, Refusal } from "./api-e4e06833e0.js";
import { counted, h, say, table, value } from "./dom-39d5e33b29.js";
import { curlLine, elsewhere, sendLine } from "./shell-6e3ff6e31e.js";
const text = (name, title, hint = "") => ({name, title, hint});
const choice = (name, title, options) => ({name, title, options});
const acts = {
detach: {
title: "Take two people apart", path: "sync/detach", vouches: true,
about: "Some identities leave a profile for one of their own. Devices known by nothing else go along. The two stay apart \
until somebody lets them meet again.",
fields: [text("mpid", "Profile (MPID)"), {name: "identities", title: "What leaves, to a new profile"}],
},
allow: {
title: "Let two people meet again", path: "sync/allow", vouches: true,
about: "Ends what keeps two profiles apart. Nothing is merged by it.",
fields: [text("mpid", "Profile (MPID)"), text("otherMPID", "The other profile")],
},
restrict: {
title: "Restrict a person", path: "sync/restrict", vouches: true,
about: "What is known of them is kept and not used. Logins go on, and nothing is learnt from them.",
fields: [text("mpid", "Profile (MPID)"), choice("isRestricted", "What is known may", [["true", "not be used"], ["false", "be used again"]])],
},
"change-external-id": {
title: "Change an external id", path: "link/change-external-id",
about: "The person stays the same user. A backend that goes on with the old name is refused.",
fields: [text("userId", "User"), text("newExternalId", "New external id")],
},
"unlink-user": {
title: "Take a user's external id", path: "link/unlink-user",
about: "The person stays on its installs without it, and cannot be given it again.",
fields: [text("userId", "User")],
},
"make-active": {
title: "Make an install active", path: "link/make-active",
about: "A person has one: this one becomes it, and the one before is told.",
fields: [text("installId", "Install")],
},
"set-install-status": {
title: "Enable or disable an install", path: "link/set-install-status", scope: "admin",
about: "The app hears of it at its next call, and has to act on it.",
fields: [text("installId", "Install"), choice("status", "It is to be", [["disabled", "disabled"], ["enabled", "enabled"]])],
},
};
export function mayAct(name) {
const act = acts[name];
return may(act.scope ?? "support") && (!act.vouches || !holder.enforces || may("identity.vouch"));
}
export const actAddress = (name, data) => `#/do/${name}?${new URLSearchParams(data)}`;
export function actsPage() {
return [
h("div.title", h("p.quiet", "Support"), h("h1", {tabindex: "-1"}, "Do")),
h("p", "Everything is tried first, and carries your name and your reason. Begin on a person's page: it fills in the ids."),
h("ul.acts", Object.entries(acts).map(([name, act]) => h("li.card",
h("h2", mayAct(name) ? h("a", {href: actAddress(name, {})}, act.title) : act.title), h("p", act.about),
!mayAct(name) && h("p.quiet", needed(act))))),
];
}
const needed = (act) => `This key may not: it needs ${act.scope ?? "support"}${act.vouches && holder.enforces ? " and identity.vouch" : ""}.`;
export function actPage(name, query) {
const act = acts[name];
if (!act) return [h("h1", {tabindex: "-1"}, "There is no such act"), h("p", h("a", {href: "#/do"}, "All that can be done"))];
const page = h("ib-act");
page.begin(act, new URLSearchParams(query));
return [h("div.title", h("p.quiet", "Do"), h("h1", {tabindex: "-1"}, act.title)), h("p", act.about),
mayAct(name) ? page : h("p.notice.bad", needed(act))];
}
export class Act extends HTMLElement {
#act;
#form;
#identities = h("div.identities");
#outcome = h("div.outcome", {"aria-live": "polite"});
#tried = null;
begin(act, known) {
this.#act = act;
this.#form = h("form.card", {onsubmit: (event) => this.#submit(event), oninput: () => this.#forget()},
act.fields.map((field) => this.#field(field, known.get(field.name))),
input(text("author", "Your name"), known.get("author") ?? Act.author),
input(text("reason", "Why", "For whoever asks later, such as the number of the case."), known.get("reason")),
h("div.buttons", h("button.primary", {type: "submit"}, "Preview")));
this.replaceChildren(this.#form, this.#outcome);
if (known.get("mpid")) this.#listIdentities(known.get("mpid"), known.getAll("identity"));
}
#field(field, known) {
if (field.name === "identities") return h("fieldset", h("legend", field.title), this.#identities);
if (!field.options) {
const made = input(field, known);
if (field.name === "mpid") made.querySelector("input").addEventListener("change", ({target}) => this.#listIdentities(target.value));
return made;
}
return label(field, h("select", {id: `f-${field.name}`, name: field.name},
field.options.map(([name, title]) => h("option", {value: name, selected: name === known}, title))));
}
async #listIdentities(mpid, chosen = []) {
if (!this.#act.fields.some(({name}) => name === "identities")) return;
try {
const profile = await call("POST", "/admin/v1/profiles/resolve", {mpid});
const all = Object.entries(profile.identities).flatMap(([type, values]) => values.map((value) => ({type, value})));
this.#identities.replaceChildren(...all.map((one, index) => h("label.check",
h("input", {type: "checkbox", name: "identities", value: JSON.stringify(one), id: `i-${index}`,
checked: chosen.includes(one.value)}),
h("span", h("span.quiet", `${one.type} `), value(one.value)))));
} catch (refusal) {
this.#identities.replaceChildren(h("p.notice.bad", refusal.message));
}
}
#forget() {
if (!this.#tried) return;
this.#tried = null;
this.#outcome.replaceChildren();
}
#data() {
const form = new FormData(this.#form);
const data = {};
for (const {name} of [...this.#act.fields, {name: "author"}, {name: "reason"}]) {
if (name === "identities") data[name] = form.getAll(name).map((one) => JSON.parse(one));
else if (name === "isRestricted") data[name] = form.get(name) === "true";
else if (form.get(name)) data[name] = form.get(name).trim();
}
return data;
}
async #submit(event) {
event.preventDefault();
const data = this.#data();
Act.author = data.author;
const path = `/admin/v1/${this.#act.path}`;
await this.#during("Trying it in all services…", async () => {
const trial = await call("POST", `${path}?dryRun=true`, data);
this.#tried = {path, data, key: crypto.randomUUID?.() ?? String(Math.random())};
this.#show("This would happen", trial, h("div.buttons",
h("button.danger", {type: "button", onclick: () => this.#carryOut()}, "Carry it out"),
h("span.quiet", "Nothing is done yet.")), this.#lines(path, data));
});
}
async #carryOut() {
const {path, data, key} = this.#tried ?? {};
if (!path) return;
await this.#during("Carrying it out…", async () => {
const result = await call("POST", path, data, {headers: {"Idempotency-Key": key}});
this.#tried = null;
const id = data.installId ?? data.userId ?? data.mpid;
this.#show("It is done", {result}, h("p", h("a", {href: `#/person/${encodeURIComponent(id)}`}, "See the person as it is now")));
say("It is done.");
});
}
async #during(words, work) {
const buttons = [...this.querySelectorAll("button")];
buttons.forEach((button) => { button.disabled = true; });
this.#outcome.replaceChildren(h("p.quiet", words));
try {
await work();
} catch (refusal) {
if (!(refusal instanceof Refusal)) throw refusal;
this.#tried = null;
this.#outcome.replaceChildren(h("section.card", h("h2", "It cannot be done"), h("p.notice.bad", refusal.message),
h("p.quiet", refusal.code && ["reason ", value(refusal.code)], refusal.ref && [", request ", value(refusal.ref)])));
}
buttons.forEach((button) => { button.disabled = false; });
this.#outcome.firstElementChild.scrollIntoView({block: "nearest"});
}
#show(title, {result, events = [], message}, ...more) {
this.#outcome.replaceChildren(h("section.card.trial", h("h2", title),
message && h("p.notice", message),
events.length > 0 && [h("h3", counted(events.length, "change")), h("ul.plain", events.map((event) => h("li", event.words)))],
result?.devices?.length > 0 && [h("h3", "Devices"), table("Devices", deviceColumns, result.devices)],
!events.length && !result?.devices?.length && h("p", "Nothing else changes."),
more));
}
#lines(path, data) {
const type = this.#act.path.replace("/", ".");
return elsewhere(["a preview", sendLine(type, data, true)], ["the act", sendLine(type, data, false)],
["HTTP, a preview", curlLine("POST", `${path}?dryRun=true`, data)]);
}
}
const deviceColumns = [
["Device", (row) => value(row.deviceId)],
["Profile", (row) => value(row.mpid)],
["Session", (row) => row.endsSession ? "ends" : "stays"],
["The next login there finds", (row) => row.nextLogin?.mpid ? value(row.nextLogin.mpid) : "a new profile"],
["and leaves out", (row) => row.nextLogin?.barred?.join(", ") || "nothing"],
];
const label = ({name, title, hint}, control) =>
h("div.field", h("label", {for: `f-${name}`}, title), hint && h("p.quiet", {id: `h-${name}`}, hint), control);
const input = (field, known) => label(field, h("input", {
id: `f-${field.name}`, name: field.name, value: known ?? "", required: true, autocomplete: "off", spellcheck: "false",
"aria-describedby": field.hint ? `h-${field.name}` : null,
}));
Act.author = "";
customElements.define("ib-act", Act);
"""#),
        File(
            name: "api-e4e06833e0.js", type: "text/javascript; charset=utf-8",
            text: #"""
let secret = null;
export let holder = null;
export const isDemo = document.documentElement.dataset.mode === "demo";
export class Refusal extends Error {
constructor(status, problem) {
super(problem.detail ?? problem.title ?? "The gateway does not answer.");
this.status = status;
this.code = problem.code ?? "";
this.ref = problem.ref ?? "";
}
}
export async function signIn(key) {
secret = key;
try {
holder = await call("GET", "/admin/v1/key");
} catch (refusal) {
signOut();
throw refusal;
}
}
export function signOut() {
secret = null;
holder = null;
}
export const may = (...scopes) => scopes.every((scope) => holder?.scopes.includes(scope));
export async function call(method, path, body, {headers = {}, signal} = {}) {
let response;
try {
response = await fetch(path, {
method, signal, cache: "no-store", credentials: "omit", redirect: "error",
headers: {Authorization: `Bearer ${secret}`, ...(body ? {"Content-Type": "application/json"} : {}), ...headers},
body: body && JSON.stringify(body),
});
} catch (failure) {
if (failure.name === "AbortError") throw failure;
throw new Refusal(0, {detail: "The gateway cannot be reached."});
}
const answer = await response.json().catch(() => ({}));
if (!response.ok) throw new Refusal(response.status, answer);
return answer;
}
export const explain = (id, source, limit = 200, signal) =>
call("POST", "/admin/v1/people/resolve", {id, limit, ...(source ? {source} : {})}, {signal});
"""#),
        File(
            name: "app-fb4e7bc2aa.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { holder, isDemo, may, signIn, signOut } from "./api-e4e06833e0.js";
import { h, say, visible } from "./dom-39d5e33b29.js";
import { actPage, actsPage } from "./act-65fbb8232b.js";
import { commandPage } from "./command-05f8b48cb2.js";
import { homePage } from "./home-fd7fd451ff.js";
import { lettersPage } from "./letters-19b4a8f900.js";
import { nowPage } from "./now-c8f2ebc3d0.js";
import { personPage } from "./person-66752e1884.js";
const main = document.getElementById("main");
let leaving = new AbortController();
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
know(id) { if (this.#field) this.#field.value = id ?? ""; }
#look(event) {
event.preventDefault();
const address = `#/person/${encodeURIComponent(this.#field.value.trim())}`;
if (location.hash === address) show();
else location.hash = address;
}
}
customElements.define("ib-search", Search);
document.getElementById("out").addEventListener("click", () => { signOut(); show(); });
addEventListener("hashchange", show);
show();
"""#),
        File(
            name: "command-05f8b48cb2.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { explain } from "./api-e4e06833e0.js";
import { h, moment, value } from "./dom-39d5e33b29.js";
import { details, missing, rule } from "./story-f5b5e3a896.js";
import { curlLine, elsewhere, explainLine } from "./shell-6e3ff6e31e.js";
export async function commandPage(id, source, signal) {
const {decisions: found, silent} = await explain(id, source, 50, signal);
const decisions = found.filter(({commandId}) => commandId === id);
return [
h("div.title", h("p.quiet", "Command"), h("h1", {tabindex: "-1"}, value(id))),
missing({silent}),
decisions.length ? decisions.map(decided) : unknown(id),
elsewhere(
["the command line", explainLine(id, source)],
["HTTP", curlLine("POST", "/admin/v1/people/resolve", {id, ...(source ? {source} : {})})]),
];
}
function decided(decision) {
const {words} = decision;
return h("section.card",
h("h2", `${words.title}, decided by ${decision.service}`),
h("p", moment(decision.decidedAt), " ", rule(words.rule)),
h(decision.outcome === "rejected" ? "p.notice.bad" : "p.notice.good", words.outcome ?? "done"),
h("ul.plain", words.lines.map((line) => h("li", line))),
details(decision));
}
function unknown(id) {
return h("section.card.empty", h("h2", "No service remembers this command"),
h("p", "It never arrived, has another source than the gateway's and the command line's (add ", h("code", "/SOURCE"),
" to the address), became a ", h("a", {href: "#/letters"}, "dead letter"), ", or is forgotten."),
h("p", h("a", {href: `#/person/${encodeURIComponent(id)}`}, "Look for a person with this id")));
}
"""#),
        File(
            name: "console-cfbc0d7f95.css", type: "text/css; charset=utf-8",
            text: #"""
:root{
color-scheme:light dark;
--ground:light-dark(#f4f5f8,#101319);
--card:light-dark(#ffffff,#191d26);
--raised:light-dark(#eef0f5,#232936);
--edge:light-dark(#d5d9e3,#343c4d);
--ink:light-dark(#1a2030,#e8ebf2);
--quiet:light-dark(#565f75,#a3acc0);
--link:light-dark(#1f4fc4,#8fb2ff);
--on-link:light-dark(#ffffff,#0d1630);
--good:light-dark(#17693a,#74d39a);
--good-ground:light-dark(#e5f4ea,#12301f);
--warn:light-dark(#7a4d00,#f0c069);
--warn-ground:light-dark(#fdf3dc,#33270c);
--bad:light-dark(#ad1f1f,#ff9b94);
--bad-ground:light-dark(#fcebea,#3a1819);
--mono:ui-monospace,monospace;
font:16px/1.5 system-ui,sans-serif;
background:var(--ground);
color:var(--ink);
}
*{box-sizing:border-box}
body{margin:0}
main{max-width:72rem;margin:0 auto;padding:1.5rem 1.25rem 4rem;outline:none}
h1,h2,h3,h4{line-height:1.25;margin:0}
h1{font-size:1.8rem;letter-spacing:-0.02em;overflow-wrap:anywhere}
:focus-visible{outline:3px solid var(--link);outline-offset:2px;border-radius:4px}
h1:focus-visible{outline:none}
h2{font-size:1.1rem;margin-bottom:0.75rem}
h3{font-size:0.95rem;margin:1.25rem 0 0.5rem;color:var(--quiet);font-weight:600}
h4{font-size:0.85rem;margin:0.75rem 0 0.25rem;color:var(--quiet)}
p{margin:0 0 0.75rem}
a{color:var(--link)}
[hidden]{display:none !important}
.visually-hidden{position:absolute;width:1px;height:1px;margin:-1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.skip{position:absolute;left:1rem;top:-4rem;background:var(--card);padding:0.5rem 1rem;z-index:2}
.skip:focus{top:0.5rem}
.quiet{color:var(--quiet);font-weight:400}
.good{color:var(--good)}
.warn{color:var(--warn)}
.bad{color:var(--bad)}
.value,code,pre{font-family:var(--mono);font-size:0.9em;overflow-wrap:anywhere}
h1 .value{font-family:inherit;font-size:inherit}
.bar{display:flex;flex-wrap:wrap;align-items:center;gap:0.5rem 1.25rem;padding:0.6rem 1.25rem;background:var(--card);border-bottom:1px solid var(--edge)}
.brand{color:var(--ink);text-decoration:none;font-size:1.1rem;padding:0.25rem 0}
.brand b{color:var(--link)}
.bar ib-search{flex:1 1 18rem;max-width:34rem}
.bar nav{display:flex;gap:0.25rem;margin-left:auto}
.bar nav a{color:var(--ink);text-decoration:none;padding:0.35rem 0.7rem;border-radius:8px}
.bar nav a[aria-current]{background:var(--raised);font-weight:600}
ib-search form{display:flex;gap:0.5rem}
ib-search input{flex:1;min-width:0}
ib-search[data-large]{display:block;max-width:44rem;margin-bottom:2rem}
ib-search[data-large] input{font-size:1.1rem;padding:0.7rem 0.9rem}
input,select,button,.button{font:inherit;color:inherit;border:1px solid var(--edge);border-radius:8px;background:var(--card);padding:0.4rem 0.75rem;min-height:2.25rem}
input,select{border-color:var(--quiet)}
input::placeholder{color:var(--quiet);opacity:1}
input[type="checkbox"]{min-height:0;width:1.15rem;height:1.15rem;accent-color:var(--link)}
button,.button{background:var(--raised);cursor:pointer;text-decoration:none;display:inline-block}
button:disabled{opacity:0.6;cursor:progress}
.primary{background:var(--link);color:var(--on-link);border-color:var(--link);font-weight:600}
.danger{background:var(--bad);color:var(--card);border-color:var(--bad);font-weight:600}
.small{font-size:0.85rem;padding:0.15rem 0.55rem;min-height:1.75rem;white-space:nowrap}
.field{margin-bottom:1rem;max-width:36rem}
.field label,legend{font-weight:600;display:block;margin-bottom:0.25rem}
.field p{margin-bottom:0.35rem;font-size:0.9rem}
.field input,.field select{width:100%}
fieldset{border:1px solid var(--edge);border-radius:8px;margin:0 0 1rem;padding:0.5rem 1rem 0.75rem;max-width:36rem}
legend{padding:0 0.4rem}
.check{display:flex;gap:0.6rem;align-items:center;padding:0.3rem 0}
.buttons{margin-top:0.75rem;display:flex;flex-wrap:wrap;gap:0.75rem;align-items:center}
.choices{display:flex;flex-wrap:wrap;gap:0.4rem;margin-bottom:1rem}
.choice{font-size:0.9rem;border-radius:999px;background:transparent}
.choice[aria-pressed="true"]{background:var(--ink);color:var(--card);border-color:var(--ink)}
.sign-in{max-width:32rem;margin:8vh auto 0}
.sign-in h1{margin-bottom:0.5rem}
.demo{border-top:1px solid var(--edge);margin-top:1.25rem;padding-top:1rem}
.card{background:var(--card);border:1px solid var(--edge);border-radius:12px;padding:1.1rem 1.25rem;margin-bottom:1rem}
.title{margin-bottom:1rem}
.title p{margin:0}
.lead{font-size:1.1rem;color:var(--quiet);margin-top:0.25rem}
.chips{display:flex;flex-wrap:wrap;gap:0.4rem 0.6rem;align-items:center;margin:0.4rem 0 0}
.chip,.rule,.service{font-size:0.8rem;background:var(--raised);border-radius:999px;padding:0.1rem 0.6rem;white-space:nowrap}
.rule{border:1px solid var(--edge);background:none;border-radius:6px}
.notice{border-left:4px solid var(--warn);background:var(--warn-ground);color:var(--ink);padding:0.6rem 0.9rem;border-radius:0 8px 8px 0}
.notice.bad{border-color:var(--bad);background:var(--bad-ground)}
.notice.good{border-color:var(--good);background:var(--good-ground)}
.plain,.findings,.story,.cases,.acts{list-style:none;margin:0;padding:0}
.plain li + li{margin-top:0.2rem}
.findings li{display:flex;flex-wrap:wrap;gap:0.3rem 0.75rem;align-items:center;padding:0.5rem 0.75rem;margin-bottom:0.4rem;border-radius:8px;border-left:4px solid;color:var(--ink)}
.findings li > span:first-child{flex:1 1 18rem}
.findings .good{border-color:var(--good);background:var(--good-ground)}
.findings .warn{border-color:var(--warn);background:var(--warn-ground)}
.findings .bad{border-color:var(--bad);background:var(--bad-ground)}
.findings .quiet{border:0;padding:0}
.cases,.acts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr));gap:1rem;margin-bottom:1rem}
.cases .card,.acts .card{margin:0;display:flex;flex-direction:column}
.cases .button{margin-top:auto;text-align:center}
blockquote{margin:0 0 0.5rem;font-size:1.1rem;font-weight:600}
dl{display:grid;grid-template-columns:max-content 1fr;gap:0.25rem 1rem;margin:0}
dt{color:var(--quiet)}
dd{margin:0;overflow-wrap:anywhere;min-width:0}
.tiles{grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:0.75rem;margin-bottom:1rem}
.tile{background:var(--card);border:1px solid var(--edge);border-radius:12px;padding:0.75rem 1rem;display:flex;flex-direction:column-reverse;justify-content:flex-end}
.tile dd{font-size:1.45rem;font-weight:650;letter-spacing:-0.02em;font-variant-numeric:tabular-nums}
.tile dd a{color:inherit}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:0.92rem}
th,td{text-align:left;vertical-align:top;padding:0.45rem 0.9rem 0.45rem 0;border-bottom:1px solid var(--edge)}
thead th{color:var(--quiet);font-weight:600;white-space:nowrap}
tbody tr:last-child > *{border-bottom:0}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td .value{overflow-wrap:break-word}
td .small{margin:0 0.35rem 0.25rem 0}
time{white-space:nowrap;font-variant-numeric:tabular-nums}
.graph{display:block;max-width:100%;height:auto;margin:0 auto}
.node rect{fill:var(--raised);stroke:var(--edge)}
.node.user rect,.node.profile rect{fill:var(--card);stroke:var(--link);stroke-width:1.5}
.node.good rect{stroke:var(--good);fill:var(--good-ground)}
.node.bad rect{stroke:var(--bad);fill:var(--bad-ground)}
.node text{fill:var(--ink);font-size:13px}
.node .name{font-family:var(--mono)}
.node .note{fill:var(--quiet);font-size:11.5px}
.line{fill:none;stroke:var(--quiet);stroke-width:1.5}
.line.over{stroke-dasharray:4 5}
.day h3{margin:1.25rem 0 0.5rem}
.entry{position:relative;border-left:2px solid var(--edge);padding:0 0 1.1rem 1.25rem;margin-left:0.4rem;color:var(--ink)}
.entry::before{content:"";position:absolute;left:-7px;top:0.45rem;width:12px;height:12px;border-radius:50%;background:var(--good);border:2px solid var(--card)}
.entry.bad::before{background:var(--bad);border-radius:2px}
.entry.quiet::before{background:var(--quiet)}
.entry .head{display:flex;flex-wrap:wrap;gap:0.15rem 0.65rem;align-items:baseline}
.entry .head time{color:var(--quiet);font-size:0.9rem}
.entry li{overflow-wrap:anywhere}
.entry .outcome{margin:0.15rem 0;font-weight:600}
.entry.bad .outcome{color:var(--bad)}
.silence{border-left:2px dotted var(--edge);margin-left:0.4rem;padding:0.1rem 0 1rem 1.25rem;color:var(--quiet);font-size:0.9rem}
details{margin-top:0.35rem}
summary{color:var(--quiet);cursor:pointer;width:max-content;max-width:100%;padding:0.15rem 0}
.details{background:var(--raised);border-radius:8px;padding:0.75rem 1rem;margin-top:0.35rem;font-size:0.92rem}
pre{margin:0.2rem 0 0.6rem;max-height:18rem;overflow:auto;white-space:pre-wrap}
.elsewhere{margin-top:1.5rem}
.line{display:flex;flex-wrap:wrap;align-items:center;gap:0.3rem 0.75rem}
.elsewhere .line{background:var(--raised);border-radius:8px;padding:0.5rem 0.75rem;margin-top:0.4rem}
.elsewhere code{flex:1 1 20rem}
@media (max-width:40rem){
main{padding:1rem 0.75rem 3rem}
.bar{padding:0.5rem 0.75rem}
.bar ib-search{order:3;flex-basis:100%;max-width:none}
.bar nav{margin-left:0;order:2}
#out{order:1;margin-left:auto}
.bar nav a{padding:0.35rem 0.5rem}
.graph{display:none}
h1{font-size:1.45rem}
.card{padding:0.9rem 0.9rem;border-radius:10px}
.scroll > table:not(.changes) thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.scroll > table:not(.changes) :is(tbody,tr,td){display:block}
.scroll > table:not(.changes) tr{border-bottom:1px solid var(--edge);padding:0.5rem 0}
.scroll > table:not(.changes) tr:last-child{border-bottom:0}
.scroll > table:not(.changes) td{border:0;padding:0.15rem 0;display:grid;grid-template-columns:7rem 1fr;text-align:left;white-space:normal}
.scroll > table:not(.changes) td::before{content:attr(data-title);color:var(--quiet)}
td .value{overflow-wrap:anywhere}
td:has(> div:empty){display:none !important}
dl:not(.tiles){grid-template-columns:1fr;gap:0}
dl:not(.tiles) dd{margin-bottom:0.4rem}
}
"""#),
        File(
            name: "dom-39d5e33b29.js", type: "text/javascript; charset=utf-8",
            text: #"""
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
export function visible(text) {
return String(text).replace(unsafe, (mark) => "\\u" + mark.charCodeAt(0).toString(16).padStart(4, "0"));
}
export function h(name, ...parts) {
const [tag, ...classes] = name.split(".");
return fill(document.createElement(tag), classes, parts);
}
export function svg(name, ...parts) {
const [tag, ...classes] = name.split(".");
return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), classes, parts);
}
function fill(element, classes, parts) {
if (classes.length) element.setAttribute("class", classes.join(" "));
const isPart = (part) => part instanceof Node || Array.isArray(part) || typeof part !== "object" || part === null;
if (parts.length && !isPart(parts[0])) set(element, parts.shift());
add(element, parts);
return element;
}
function set(element, attributes) {
for (const [name, value] of Object.entries(attributes)) {
if (typeof value === "function") element.addEventListener(name.slice(2), value);
else if (value === true) element.setAttribute(name, "");
else if (value !== false && value != null) element.setAttribute(name, value);
}
}
function add(element, parts) {
for (const part of parts.flat(Infinity)) {
if (part == null || part === false) continue;
element.append(part instanceof Node ? part : document.createTextNode(visible(part)));
}
}
export function say(text) {
document.getElementById("said").textContent = visible(text);
}
export const value = (text) => h("bdi.value", text);
export function table(caption, columns, rows, empty) {
if (!rows.length) return h("p.quiet", empty);
const cell = (row) => ([title, content, kind]) =>
h(kind ? `td.${kind}` : "td", {"data-title": title}, h("div", content(row)));
return h("div.scroll", {tabindex: "0", role: "region", "aria-label": caption},
h("table",
h("caption.visually-hidden", caption),
h("thead", h("tr", columns.map(([title, , kind]) => h(kind ? `th.${kind}` : "th", {scope: "col"}, title)))),
h("tbody", rows.map((row) => h("tr", columns.map(cell(row)))))));
}
export const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
export function duration(milliseconds) {
const seconds = Math.round(milliseconds / 1000);
for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
if (seconds >= size) return counted(Math.floor(seconds / size), unit);
}
return counted(Math.max(0, seconds), "second");
}
export function moment(text, withDay = true) {
const shown = String(text).replace("T", " ").replace(/(\.\d+)?Z$/, "");
return h("time", {datetime: text, title: text}, withDay ? shown : shown.slice(11));
}
"""#),
        File(
            name: "graph-f702abb00a.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { h, svg, value, visible } from "./dom-39d5e33b29.js";
export function relations(rows) {
const nodes = new Map();
const lines = new Map();
const node = (kind, name, more = {}) => {
const id = `${kind} ${name}`;
nodes.set(id, {id, kind, text: name, ...nodes.get(id), ...more});
return id;
};
const line = (from, to, word, isOver = false) => lines.set(`${from} ${to}`, {from, to, word, isOver});
const reads = {
"link user": (row) => {
const user = node("user", row.userId, {note: row.isErased ? "erased" : row.externalId ?? "no external id",
tone: row.isErased || row.isRestricted ? "bad" : ""});
if (row.externalId) line(user, node("identity", row.externalId, {note: "external id"}), "is called");
},
"link install": (row) => {
const install = node("install", row.installId, {note: `${row.device}, ${row.activity ?? "another user's"}`,
tone: row.activity === "active" ? "good" : [undefined, "enabled"].includes(row.status) ? "" : "bad"});
if (row.userId) line(node("user", row.userId), install, "is on");
},
"sync profile": (row) => {
const profile = node("profile", row.mpid, {note: row.isErased ? "erased" : row.isRestricted ? "restricted" : "profile",
tone: row.isErased || row.isRestricted ? "bad" : ""});
if (row.userId) line(node("user", row.userId), profile, "is the user of");
for (const {type, value} of row.identities ?? []) {
const isKnown = type === "customerid" && nodes.has(`identity ${value}`);
line(profile, node("identity", value, isKnown ? {note: "external id, customerid"} : {note: type}), "is called");
}
for (const other of row.apartFrom ?? []) line(profile, node("profile", other), "is kept apart from", true);
},
"sync device": (row) => {
const device = node("device", row.deviceId);
for (const mpid of row.users ?? []) {
if (mpid !== row.mpid && nodes.has(`profile ${mpid}`)) line(node("profile", mpid), device, "was on", true);
}
if (row.mpid) line(node("profile", row.mpid), device, "is on");
},
"verification session": (row) => node("device", row.deviceId, {note: row.state,
tone: row.state === "verified" ? "good" : row.state === "unverified" ? "bad" : ""}),
};
const order = Object.keys(reads);
const kind = ({service, row}) => `${service} ${row.kind}`;
for (const one of rows.toSorted((a, b) => order.indexOf(kind(a)) - order.indexOf(kind(b)))) reads[kind(one)]?.(one.row);
return {nodes: [...nodes.values()], lines: [...lines.values()]};
}
const columns = {identity: 0, user: 1, profile: 1, install: 2, device: 2};
const [width, height, gap] = [236, 46, 14];
export function graph({nodes, lines}) {
const rows = [0, 1, 2].map((column) => nodes.filter((node) => columns[node.kind] === column));
const tall = Math.max(...rows.map((nodes) => nodes.length)) * (height + gap) - gap;
const places = new Map();
rows.forEach((nodes, column) => {
const free = tall - (nodes.length * (height + gap) - gap);
nodes.forEach((node, index) => places.set(node.id, {x: 1 + column * 322, y: 1 + free / 2 + index * (height + gap)}));
});
const size = [322 * 2 + width + 2, tall + 2];
return drawing(size, nodes, lines, places, (from, to) => {
const [left, right] = from.x <= to.x ? [from, to] : [to, from];
const [y1, y2] = [left.y + height / 2, right.y + height / 2];
if (left.x === right.x) {
const x = left.x + width;
return `M${x} ${y1}C${x + 44} ${y1} ${x + 44} ${y2} ${x} ${y2}`;
}
const [x1, x2] = [left.x + width, right.x];
return `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`;
});
}
function drawing([wide, tall], nodes, lines, places, path) {
const label = `${nodes.length} names, people and devices, and who belongs to whom. The list below says the same.`;
return svg("svg.graph", {viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall, role: "img", "aria-label": label},
lines.map(({from, to, isOver}) =>
svg(isOver ? "path.line.over" : "path.line", {d: path(places.get(from), places.get(to))})),
nodes.map((node) => {
const {x, y} = places.get(node.id);
return svg(`g.node.${node.kind}${node.tone ? `.${node.tone}` : ""}`, {transform: `translate(${x} ${y})`},
svg("title", `${node.kind} ${node.text}`),
svg("rect", {width, height, rx: 8}),
svg("text.name", {x: 12, y: 20}, short(node.text, 27)),
svg("text.note", {x: 12, y: 36}, short(`${node.kind}${node.note && node.note !== node.kind ? `, ${node.note}` : ""}`, 34)));
}));
}
function short(text, length) {
const shown = [...visible(text)];
if (shown.length <= length) return shown.join("");
return `${shown.slice(0, length - 9).join("")}…${shown.slice(-8).join("")}`;
}
export function list({nodes, lines}) {
const text = (id) => nodes.find((node) => node.id === id);
const link = (node) => h("a", {href: `#/person/${encodeURIComponent(node.text)}`}, value(node.text));
return h("details", h("summary", "As a list"),
h("ul.relations", lines.map(({from, to, word}) =>
h("li", `${text(from).kind} `, link(text(from)), ` ${word} `, to.startsWith("identity") ? "" : `${text(to).kind} `, link(text(to))))));
}
"""#),
        File(
            name: "home-fd7fd451ff.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { holder, isDemo, may } from "./api-e4e06833e0.js";
import { h, value } from "./dom-39d5e33b29.js";
const cases = [
["ivan@mail.example", "I see somebody else's orders.", "Ivan's e-mail is in Grace's profile. Take them apart, and look \
at the preview before you carry it out."],
["ada", "My phone was stolen. I have my tablet here.", "The tablet waits behind the phone. Make the tablet active."],
["lindas-phone", "The shop does not know me in the app.", "Her external id was mistyped when she was linked. Change it: she \
stays the same user."],
];
export function homePage() {
return [
h("div.title", h("h1", {tabindex: "-1"}, "Who is it about?")),
h("p.lead", "Look for any id: an e-mail, an external id, a user, an install, a device, an MPID, or the id of a command."),
h("ib-search", {"data-large": true}),
!may("support") && h("p.notice.bad", "This key may not read about people: it lacks the scope support."),
isDemo && h("section", h("h2", "Three complaints to begin with"),
h("ol.cases", cases.map(([id, words, hint]) => h("li.card",
h("blockquote", `“${words}”`), h("p", hint), h("a.button", {href: `#/person/${encodeURIComponent(id)}`}, "Look for ", value(id)))))),
isDemo && h("p", "Nine more are told in ", h("code", "docs/console.md"), "."),
h("section.card", h("h2", "This key"), h("dl",
h("dt", "app"), h("dd", value(holder.app)),
h("dt", "key"), h("dd", value(holder.key)),
h("dt", "may"), h("dd", holder.scopes.length ? holder.scopes.join(", ") : "nothing"),
h("dt", "noted"), h("dd", "What you read or do here is in the log."))),
];
}
"""#),
        File(
            name: "letters-19b4a8f900.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { call, holder } from "./api-e4e06833e0.js";
import { h, moment, table, value } from "./dom-39d5e33b29.js";
import { curlLine, elsewhere, quoted } from "./shell-6e3ff6e31e.js";
export async function lettersPage(signal) {
const {groups, isComplete} = await call("GET", "/admin/v1/dead-letters", null, {signal});
const list = `identitybus dlq list --app ${quoted(holder.app)}`;
return [
h("div.title", h("p.quiet", "Deployment"), h("h1", {tabindex: "-1"}, "Dead letters")),
!isComplete && h("p.notice", "There are more letters than are counted here; the newest are."),
h("section.card",
h("h2", "By reason"),
table("Dead letters by reason", columns, groups, "There is none. Of records that name no app, only keys with the scope admin are told.")),
h("section.card", h("h2", "What can be done"), h("ol.steps",
step("Look at one: what came, and what a replay would do now.", "identitybus dlq show link/6@0"),
step("Send a reason's again, each once and in order; first with --dry-run.",
`identitybus dlq replay --reason REASON --app ${quoted(holder.app)} --reason-text "…"`),
step("Or say that nobody will.", `identitybus dlq dismiss link/6@0 --reason-text "…"`))),
elsewhere(["the command line", list], ["each letter", `${list} --each`],
["HTTP", curlLine("GET", "/admin/v1/dead-letters")]),
];
}
const columns = [
["Service", (row) => row.service],
["Reason", (row) => h("strong", value(row.reason))],
["Open", (row) => h(row.open ? "span.bad" : "span", row.open), "number"],
["Letters", (row) => row.letters, "number"],
["Oldest open", (row) => row.oldest ? moment(row.oldest) : "–"],
["Newest", (row) => moment(row.newest)],
["One of them", (row) => value(row.example)],
];
const step = (text, line) => h("li", text, h("br"), h("code", {tabindex: "0"}, line));
"""#),
        File(
            name: "now-c8f2ebc3d0.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { call } from "./api-e4e06833e0.js";
import { duration, h, moment, table, value } from "./dom-39d5e33b29.js";
import { curlLine, elsewhere } from "./shell-6e3ff6e31e.js";
const silence = 30_000;
const forgotten = 600_000;
export class NowPage extends HTMLElement {
#leaving = new AbortController();
connectedCallback() {
this.replaceChildren(h("p.quiet", "Waiting for the first reports…"));
this.#follow().catch((failure) => {
if (failure.name !== "AbortError") this.replaceChildren(h("p.notice.bad", {role: "alert"}, failure.message));
});
}
disconnectedCallback() { this.#leaving.abort(); }
async #follow() {
let after;
while (!this.#leaving.signal.aborted) {
const status = await call("GET", `/admin/v1/status${after ? `?after=${after}` : ""}`, null, {signal: this.#leaving.signal});
if (status.next !== after) this.#show(status);
after = status.next;
}
}
#show({at, replicas}) {
const now = Date.parse(at);
const known = replicas
.map((replica) => ({...replica, silent: now - Date.parse(replica.time)}))
.filter((replica) => replica.silent < forgotten)
.toSorted((a, b) => a.service.localeCompare(b.service) || a.replica.localeCompare(b.replica));
const [scrolled, focus] = [scrollY, this.contains(document.activeElement) && document.activeElement.id];
this.replaceChildren(...(known.length ? page(known) : [nobody()]), elsewhere(
["the command line", "identitybus watch --topic identity.status.v1 --since 30s"],
["HTTP", curlLine("GET", "/admin/v1/status")]));
scrollTo(0, scrolled);
if (focus) document.getElementById(focus)?.focus();
}
}
export const nowPage = () => [
h("div.title", h("p.quiet", "Deployment"), h("h1", {tabindex: "-1"}, "Now")),
h("ib-now"),
];
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
const rate = (number) => number >= 100 ? Math.round(number).toLocaleString("en") : number.toFixed(number >= 10 ? 0 : 1);
function page(replicas) {
const here = replicas.filter((replica) => replica.silent < silence);
const services = [...new Set(replicas.map(({service}) => service))];
const outcomes = here.map(({decided}) => decided).filter(Boolean);
const count = (outcome) => sum(outcomes.map((one) => one.outcomes[outcome] ?? 0));
const all = sum(outcomes.map((one) => sum(Object.values(one.outcomes))));
const letters = sum(services.map((service) => Math.max(0, ...here.filter((one) => one.service === service)
.map((one) => one.deadLetters?.open ?? 0))));
const oldest = Math.max(0, ...here.map((one) => one.oldestSeconds ?? 0));
const ill = replicas.filter((one) => one.silent >= silence || !one.isReady);
return [
h("dl.tiles",
tile("decided", `${rate(sum(outcomes.map((one) => sum(Object.values(one.outcomes)) / one.seconds)))}/s`),
tile("refused", all ? `${Math.round(100 * count("rejected") / all)} %` : "–"),
tile("the oldest waits", oldest < 1 ? "under 1 s" : duration(oldest * 1000), oldest > 30 ? "bad" : "good"),
tile("open dead letters", h("a", {href: "#/letters"}, letters), letters ? "bad" : "good"),
tile("replicas", ill.length ? `${here.length - ill.filter((one) => one.silent < silence).length} of ${replicas.length} ready`
: replicas.length, ill.length ? "bad" : "good")),
h("section.card", h("h2", "Replicas"), table("Replicas", columns, replicas)),
h("section.card", h("h2", "Refusals by reason"), h("p.quiet", "In the last ten seconds."),
table("Refusals by reason", [
["Service", (row) => row.service], ["Reason", (row) => value(row.reason)], ["Count", (row) => row.count, "number"],
], refusals(here), "Nothing was refused.")),
];
}
const tile = (what, number, tone = "") => h("div.tile", h("dt", what), h(tone ? `dd.${tone}` : "dd", number));
const columns = [
["Service", (one) => h("strong", one.service)],
["State", (one) => state(one)],
["Decided", (one) => one.decided ? `${rate(sum(Object.values(one.decided.outcomes)) / one.decided.seconds)}/s` : "–", "number"],
["Commit", (one) => one.decided?.commitMilliseconds != null ? `${rate(one.decided.commitMilliseconds)} ms` : "–", "number"],
["Waiting", (one) => one.waiting?.toLocaleString("en") ?? "–", "number"],
["Oldest", (one) => one.oldestSeconds != null ? `${rate(one.oldestSeconds)} s` : "–", "number"],
["Dead letters", (one) => one.deadLetters?.open ?? "–", "number"],
["Apps file", (one) => one.apps ? [value(one.apps.digest), !one.apps.isValid && h("span.bad", ", its newest version is refused")] : "–"],
["Version", (one) => `${one.version} (${one.commit.slice(0, 8)})`],
["Since", (one) => moment(one.startedAt)],
["Replica", (one) => value(one.replica)],
];
function state(one) {
if (one.silent >= silence) return h("span.bad", `silent for ${duration(one.silent)}`);
if (one.isReady) return h("span.good", "ready");
return h("span.bad", (one.failing ?? []).map(({name, detail}) => `${name}: ${detail}`).join("; ") || "not ready");
}
function refusals(replicas) {
const counts = new Map();
for (const {service, decided} of replicas) {
for (const [reason, count] of Object.entries(decided?.reasons ?? {})) {
const name = `${service} ${reason}`;
counts.set(name, {service, reason, count: count + (counts.get(name)?.count ?? 0)});
}
}
return [...counts.values()].toSorted((a, b) => b.count - a.count);
}
const nobody = () => h("section.card.empty", h("h2", "No replica has reported yet"),
h("p", "Services write to ", h("code", "identity.status.v1"), " every ten seconds. They may be of an earlier version, not reach \
Kafka, or not be allowed to: ", h("code", "identitybus doctor"), " tells."));
customElements.define("ib-now", NowPage);
"""#),
        File(
            name: "person-66752e1884.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { explain } from "./api-e4e06833e0.js";
import { counted, duration, h, moment, table, value } from "./dom-39d5e33b29.js";
import { graph, list, relations } from "./graph-f702abb00a.js";
import { missing, rule } from "./story-f5b5e3a896.js";
import { curlLine, elsewhere, explainLine } from "./shell-6e3ff6e31e.js";
import { actAddress, mayAct } from "./act-65fbb8232b.js";
export async function personPage(id, signal) {
const found = await explain(id, null, 200, signal);
const {rows, decisions} = found;
if (rows.length === 0 && decisions.length > 0 && decisions.every(({commandId}) => commandId === id)) {
location.replace(`#/command/${encodeURIComponent(id)}`);
return [];
}
const lines = elsewhere(
["the command line", explainLine(id)],
["HTTP", curlLine("POST", "/admin/v1/people/resolve", {id})]);
if (rows.length === 0 && decisions.length === 0) return [...unknown(id, found), lines];
const drawn = relations(rows);
const story = h("ib-story");
story.decisions = decisions;
return [
h("div.title", h("p.quiet", "Person"), h("h1", {tabindex: "-1"}, value(name(rows, id) ?? id)), chips(rows, id)),
missing(found),
h("section.card", h("h2", "What stands out"), findings(rows, decisions)),
drawn.nodes.length > 1 && h("section.card", h("h2", "Who belongs to whom"), graph(drawn), list(drawn)),
h("section.card", h("h2", "Now"), now(rows)),
h("section.card", h("h2", "How it came to be so"),
h("p.quiet", "Newest first, times in UTC. ", found.hasMore && "There are older decisions, which are not shown."), story),
lines,
];
}
const of = (rows, service, kind) =>
rows.filter((one) => one.service === service && one.row.kind === kind).map((one) => one.row);
const valuesOf = (profile, type) => (profile.identities ?? []).filter((one) => one.type === type).map((one) => one.value);
function name(rows, id) {
const users = of(rows, "link", "user").filter((user) => !user.isErased);
const holds = (profile) => profile.identities?.some(({value}) => value === id);
const all = of(rows, "sync", "profile");
const profiles = all.some(holds) ? all.filter(holds) : all;
const known = (type) => profiles.flatMap((profile) => valuesOf(profile, type));
return users.map((user) => user.externalId).filter(Boolean)[0] ?? known("customerid")[0] ?? known("email")[0];
}
function chips(rows, id) {
const [users, installs] = [of(rows, "link", "user"), of(rows, "link", "install")];
const [profiles, devices] = [of(rows, "sync", "profile"), of(rows, "sync", "device")];
const texts = [
[users, "user"], [installs, "install"], [profiles, "profile"], [devices, "device"],
].filter(([all]) => all.length).map(([all, what]) => counted(all.length, what));
return h("p.chips", h("span.quiet", "found by ", value(id)), texts.map((text) => h("span.chip", text)));
}
const finders = [
({profiles}) => profiles.flatMap((profile) => ["customerid", "email"].flatMap((type) => {
const values = valuesOf(profile, type);
return values.length > 1 && finding("bad", ["Profile ", value(profile.mpid), ` has ${values.length} values of ${type}: `,
join(values), ". Two people may be in one profile."], ["detach", {mpid: profile.mpid}, "Take them apart"]);
})),
({profiles, decisions}) => decisions.filter(({type}) => type === "identity.sync.modify.v1").flatMap(({events, decidedAt}) =>
events.flatMap(({data}) => (data?.added ?? []).map((one) => profiles.some((profile) =>
profile.mpid === data.mpid && valuesOf(profile, one.type).includes(one.value))
&& finding("warn", [moment(decidedAt), ` the app said ${one.type} `, value(one.value), " of profile ", value(data.mpid),
". If that is somebody else, take them apart."], ["detach", {mpid: data.mpid, identity: one.value}, "Take them apart"])))),
({users, installs}) => users.filter((user) => !user.isErased).map((user) => {
const own = installs.filter((install) => install.userId === user.userId);
const active = own.find((install) => install.activity === "active");
if (active) return finding("good", ["Active on install ", value(active.installId), ` (${active.device}, ${active.platform}).`]);
if (!own.length) return null;
return finding("warn", ["No install is active: ", join(own.map((install) => `${install.installId} ${why(install)}`)), "."],
["make-active", {installId: own[0].installId}, "Make one active"]);
}),
({users}) => users.filter((user) => user.isErased).map((user) => finding("bad", ["User ", value(user.userId), " was erased",
user.erasedAt && [" on ", moment(user.erasedAt)],
user.isUnderWay ? ", and not yet in all services." : ". What was erased cannot come back."])),
({profiles}) => profiles.filter((profile) => profile.apartFrom).map((profile) => finding("warn", ["Profile ",
value(profile.mpid), " is kept apart from ", join(profile.apartFrom), "."],
["allow", {mpid: profile.mpid, otherMPID: profile.apartFrom[0]}, "Let them meet again"])),
({profiles}) => profiles.filter((profile) => profile.isRestricted).map((profile) => finding("bad", [
"What is known of profile ", value(profile.mpid), " is kept and not used."],
["restrict", {mpid: profile.mpid, isRestricted: "false"}, "End the restriction"])),
({sessions}) => sessions.filter(({state}) => state).map((session) => finding(session.state === "verified" ? "good" : "warn", ["Device ",
value(session.deviceId), ` is ${session.state}.`])),
({decisions}) => {
const refused = decisions.findLast((decision) => decision.outcome === "rejected");
return refused && finding("bad", ["Last refused ", duration(Date.now() - Date.parse(refused.decidedAt)), " ago: ",
refused.words.title, ", ", refused.words.outcome?.replace(/^refused, /, "") ?? refused.reason, " ", rule(refused.words.rule)]);
},
];
function findings(rows, decisions) {
const kinds = {
users: of(rows, "link", "user"), installs: of(rows, "link", "install"),
profiles: of(rows, "sync", "profile"), sessions: of(rows, "verification", "session"), decisions,
};
const found = finders.flatMap((find) => find(kinds)).filter(Boolean);
return h("ul.findings", found.length ? found : h("li.quiet", "Nothing. What the services hold is below."));
}
function finding(tone, text, act) {
const [action, data, word] = act ?? [];
return h(`li.${tone}`, h("span", text), action && mayAct(action) && h("a.button.small", {href: actAddress(action, data)}, word));
}
const join = (values) => values.map((one, index) => [index > 0 && ", ", value(one)]);
const because = {restricted: "is restricted", disabled: "is disabled", superseded: "was superseded", waitsForPhone: "waits behind a phone"};
const why = (install) => install.status ? because[install.inactiveBecause] ?? `is ${install.activity}` : "another user's";
function now(rows) {
const identity = ({type, value: text}) => h("li", h("span.quiet", type, " "), value(text));
const tables = [
["Users", of(rows, "link", "user"), [
["User", (row) => value(row.userId)],
["External id", (row) => row.externalId ? value(row.externalId) : "–"],
["State", (row) => row.isErased ? "erased" : row.isRestricted ? "restricted" : "present"],
["Do", (row) => !row.isErased && [act("change-external-id", {userId: row.userId}, "Change external id"),
row.externalId && act("unlink-user", {userId: row.userId}, "Take external id")]],
]],
["Installs", of(rows, "link", "install"), [
["Install", (row) => value(row.installId)],
["Device", (row) => `${row.device}, ${row.platform}`],
["State", (row) => row.activity === "active" ? h("strong.good", "active") : why(row)],
["Do", (row) => row.status && [row.activity !== "active" && row.userId && act("make-active", {installId: row.installId}, "Make active"),
act("set-install-status", {installId: row.installId, status: row.status === "enabled" ? "disabled" : "enabled"},
row.status === "enabled" ? "Disable" : "Enable")]],
]],
["Profiles", of(rows, "sync", "profile"), [
["Profile", (row) => value(row.mpid)],
["Identities", (row) => row.identities?.length ? h("ul.plain", row.identities.map(identity)) : "none"],
["Seen", (row) => row.lastSeen && [moment(row.firstSeen), " to ", moment(row.lastSeen)]],
["Do", (row) => !row.isErased && [act("detach", {mpid: row.mpid}, "Take apart"),
act("restrict", {mpid: row.mpid, isRestricted: String(!row.isRestricted)}, row.isRestricted ? "End restriction" : "Restrict")]],
]],
["Devices", devices(rows), [
["Device", (row) => value(row.deviceId)],
["Current user", (row) => row.mpid ? value(row.mpid) : "nobody"],
["Session", (row) => row.state ?? "–"],
["Seen there", (row) => row.users ? h("ul.plain", row.users.map((user) => h("li", value(user)))) : "–"],
]],
].filter(([, all]) => all.length);
const rest = rows.filter(({service, row}) => service === "user" || row.kind === "identity" || row.kind === "hold");
return [
tables.map(([title, all, columns]) => [h("h3", title), table(title, columns, all)]),
rest.length > 0 && h("details", h("summary", "What else the services hold"),
h("ul.plain", rest.map(({words}) => h("li", words)))),
];
}
function devices(rows) {
const found = new Map();
for (const row of [...of(rows, "sync", "device"), ...of(rows, "verification", "session")]) {
found.set(row.deviceId, {...found.get(row.deviceId), ...row});
}
return [...found.values()];
}
const act = (action, data, word) => mayAct(action) && h("a.button.small", {href: actAddress(action, data)}, word);
function unknown(id, {silent = []}) {
return [
h("div.title", h("p.quiet", "Person"), h("h1", {tabindex: "-1"}, value(id))),
missing({silent}),
h("section.card.empty",
h("h2", "No service of this app knows this id"),
h("p", "It may be one of these:"),
h("ul",
h("li", "It was never seen: a typing error, or a request that never arrived."),
h("li", "It was refused before it was decided: a wrong signature, a wrong form. Then it is a ",
h("a", {href: "#/letters"}, "dead letter"), ", which no id leads to."),
h("li", "It is another app's. This key sees one app only."),
h("li", "It was erased, or forgotten by retention, and nothing of it is left."))),
];
}
"""#),
        File(
            name: "shell-6e3ff6e31e.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { h, say } from "./dom-39d5e33b29.js";
import { holder } from "./api-e4e06833e0.js";
export const quoted = (text) => /^[\w@%+=:,.\/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
const asked = () => `--app ${quoted(holder.app)} --key-id ${quoted(holder.key)}`;
export const explainLine = (id, source) =>
`identitybus explain ${id.startsWith("-") ? "-- " : ""}${quoted(id)} ${asked()}${source ? ` --source ${quoted(source)}` : ""}`;
export const sendLine = (type, data, isDryRun) =>
`identitybus send ${type} ${asked()} ${isDryRun ? "--dry-run" : "--wait 20"} --data ${quoted(JSON.stringify(data))}`;
export const curlLine = (method, path, body) =>
`curl -s ${method === "GET" ? "" : `-X ${method} `}${quoted(location.origin + path)} -H "Authorization: Bearer $KEY"`
+ (body ? ` -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))}` : "");
export function elsewhere(...lines) {
return h("details.elsewhere", h("summary", "The same from a shell"),
lines.map(([what, line]) => h("div.line",
h("span.quiet", what), h("code", {tabindex: "0"}, line),
h("button.small", {type: "button", "aria-label": `Copy the line for ${what}`, onclick: () => copy(line)}, "Copy"))));
}
async function copy(line) {
try {
await navigator.clipboard.writeText(line);
say("Copied.");
} catch {
say("The browser does not allow it; select the line.");
}
}
"""#),
        File(
            name: "story-f5b5e3a896.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { counted, duration, h, moment, value } from "./dom-39d5e33b29.js";
const pause = 3600_000;
export class Story extends HTMLElement {
#decisions = [];
#shown = "steps";
set decisions(decisions) {
this.#decisions = decisions;
this.#show();
}
static #filters = {
steps: ["What changed", (decision) => decision.words.isShown],
refused: ["Refusals", (decision) => decision.outcome === "rejected"],
all: ["All decisions", () => true],
};
#show() {
const count = (filter) => this.#decisions.filter(filter).length;
const choices = Object.entries(Story.#filters).map(([name, [title, filter]]) =>
h("button.choice", {
type: "button", "aria-pressed": String(name === this.#shown), onclick: () => this.#choose(name),
}, `${title} `, h("span.count", count(filter))));
const [, filter] = Story.#filters[this.#shown];
const steps = this.#decisions.filter(filter);
this.replaceChildren(
h("div.choices", {role: "group", "aria-label": "Which decisions are shown"}, choices),
steps.length ? h("ol.story", entries(steps)) : h("p.quiet", nothing[this.#shown]));
}
#choose(name) {
this.#shown = name;
this.#show();
this.querySelector("[aria-pressed=true]").focus();
}
}
const nothing = {
steps: "Nothing has changed as far as the services remember.",
refused: "Nothing was refused as far as the services remember.",
all: "None was made, or it was longer ago than the services remember.",
};
function entries(steps) {
let later = null;
return steps.toReversed().flatMap((decision) => {
const silence = later && Date.parse(later.decidedAt) - Date.parse(decision.decidedAt);
const isOtherDay = later?.decidedAt.slice(0, 10) !== decision.decidedAt.slice(0, 10);
later = decision;
return [
silence > pause && h("li.silence", `${duration(silence)} in which nothing happened`),
isOtherDay && h("li.day", h("h3", decision.decidedAt.slice(0, 10))),
entry(decision),
];
});
}
const colours = {rejected: "bad", expired: "bad", pending: "quiet"};
function entry(decision) {
const {words} = decision;
return h(`li.entry.${colours[decision.outcome] ?? "good"}`,
h("div.head", moment(decision.decidedAt, false), h("span.service", decision.service), h("strong", words.title),
decision.authId && h("span.quiet", "key ", value(decision.authId)), rule(words.rule)),
words.outcome && h("p.outcome", words.outcome),
h("ul.plain", words.lines.map((line) => h("li", line))),
h("details", h("summary", "Details"), details(decision)));
}
export function missing({silent = [], leftOut = []}) {
return [
silent.length > 0 && h("p.notice.bad", {role: "alert"},
`No answer from: ${silent.join(", ")}. What they know is missing here.`),
leftOut.length > 0 && h("p.notice", "Not asked about, because there are too many: ", leftOut.map((one) => [value(one), " "])),
];
}
export function rule(number) {
if (!number) return null;
const page = {L: "link", U: "user", S: "sync", V: "verification"}[number[0]];
return h("span.rule", {title: `docs/${page}.md, rule ${number}`}, `rule ${number}`);
}
export function details(decision) {
return h("div.details",
changes(decision),
h("dl",
h("dt", "command"), h("dd", h("a", {href: commandAddress(decision)}, value(decision.commandId))),
h("dt", "sent by"), h("dd", value(decision.source), decision.authId && [", key ", value(decision.authId)]),
h("dt", "type"), h("dd", value(decision.type)),
h("dt", "record"), h("dd", value(`${decision.topic}/${decision.partition}@${decision.offset}`)),
h("dt", "outcome"), h("dd", decision.outcome, decision.reason && [" ", value(decision.reason)]),
decision.hasSecret && [h("dt", "answer"), h("dd", "holds a secret, which nobody else is shown")],
decision.result && [h("dt", "answer"), h("dd", json(decision.result))]),
decision.events.length > 0 && h("div", h("h4", counted(decision.events.length, "event")), decision.events.map(told)),
decision.commands.length > 0 &&
h("div", h("h4", `${counted(decision.commands.length, "command")} to other services`), decision.commands.map(told)));
}
const told = ({type, data}) =>
h("div.told", h("code", type), data === null ? h("span.quiet", "too long to be shown here") : json(data));
export const json = (data) => h("pre", {tabindex: "0"}, JSON.stringify(data, null, 1).split("\n").map((line) => [line, h("br")]));
export const commandAddress = ({commandId, source}) =>
`#/command/${encodeURIComponent(commandId)}/${encodeURIComponent(source)}`;
function changes(decision) {
const pairs = decision.events.flatMap(({data}) => data ? before(data) : []);
if (!pairs.length) return null;
return h("div.scroll", h("table.changes",
h("thead", h("tr", ["What", "Before", "After"].map((title) => h("th", {scope: "col"}, title)))),
h("tbody", pairs.map(([what, old, now]) =>
h("tr", h("th", {scope: "row"}, what), h("td", old ? value(old) : "–"), h("td", now ? value(now) : "–"))))));
}
function before(data) {
const profile = (mpid) => `profile ${mpid}`;
const identity = ({type, value}) => `${type} ${value}`;
return [
data.deviceId && data.mpid && data.previousMPID !== data.mpid
&& [`user of device ${data.deviceId}`, data.previousMPID, data.mpid],
data.previousExternalId && ["external id", data.previousExternalId, data.externalId],
data.installId && data.status && "isActive" in data
&& [`install ${data.installId}`, "", `${data.status}, ${data.isActive ? "active" : "not active"}`],
...(data.removed ?? []).map((one) => [profile(data.mpid), identity(one), ""]),
...(data.added ?? []).map((one) => [profile(data.mpid), "", identity(one)]),
].filter(Boolean);
}
customElements.define("ib-story", Story);
"""#),
    ]
}
