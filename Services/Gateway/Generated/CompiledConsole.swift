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
<title>IdentityBus</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/console/console-8f6f87e327.css">
<script type="module" src="/console/app-4b1fece4cb.js"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the page</a>
<header class="bar">
<a class="brand" href="#/">Identity<b>Bus</b></a>
<nav aria-label="Pages" hidden>
<a href="#/now">Now</a>
<a href="#/letters">Dead letters</a>
<a href="#/do">Do</a>
</nav>
<button class="small" id="out" hidden>Sign out</button>
</header>
<main id="main" tabindex="-1"></main>
<p id="said" class="visually-hidden" role="status"></p>
<noscript><p>This page needs JavaScript; <code>identitybus explain</code> does not.</p></noscript>
</body>
</html>
"""#),
        File(
            name: "act-41c49c5a76.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { call, holder, may, Refusal } from "./api-d2b7c5b67c.js";
import { busy, card, counted, h, instead, join, list, moment, personAddress, problem, refused, table, titled, typed, value } from "./dom-e99cf799e3.js";
import { curlLine, elsewhere, sendLine } from "./shell-38c8c5f769.js";
const acts = {
__proto__: null,
detach: {
title: "Take two people apart", service: "sync",
about: "Some identities leave a profile for a new one, with the devices known by nothing else. The two stay apart from then on.",
fields: {mpid: "Profile (MPID)", identities: "What leaves, to a new profile"},
},
allow: {
title: "Let two people meet again", service: "sync",
about: "Ends what keeps two profiles apart. Nothing is merged by it.",
fields: {mpid: "Profile (MPID)", otherMPID: "The other profile"},
},
restrict: {
title: "Restrict a person", service: "sync",
about: "What is known of them is kept and not used. Logins go on.",
fields: {mpid: "Profile (MPID)", isRestricted: ["What is known may", {true: "not be used", false: "be used again"}]},
},
"change-external-id": {
title: "Change an external id",
about: "The person stays the same user. A backend that goes on with the old name is refused.",
fields: {userId: "User", newExternalId: "New external id", endHold: ["Held for another", {false: "stays so", true: "the hold ends"}]},
},
"unlink-user": {
title: "Take a user's external id",
about: "The person stays on its installs without it, and cannot be given it again.",
fields: {userId: "User"},
},
"make-active": {
title: "Make an install active",
about: "A person has one: this one becomes it, and the one before is told.",
fields: {installId: "Install"},
},
"set-install-status": {
title: "Enable or disable an install", scope: "admin",
about: "The app hears of it at its next call.",
fields: {installId: "Install", status: ["It is to be", {disabled: "disabled", enabled: "enabled"}]},
},
"erase-user": {
title: "Erase a person", scope: "user.delete",
about: "A user goes from all services, for good. Your name and your reason stay: write no name of theirs there.",
fields: {userId: "User"},
},
};
function hindrance({service, scope = "support", fields}) {
if (holder.isMasked && fields.identities) return "This key sees values masked, and cannot name what leaves.";
const lacking = [scope, service === "sync" && holder.enforces && "identity.vouch"].filter((one) => one && !may(one));
if (lacking.length) return `This key may not: it lacks ${lacking.join(" and ")}.`;
}
export const mayAct = (name) => !hindrance(acts[name]);
export const actAddress = (name, data) => `#/do/${name}?${new URLSearchParams(data)}`;
export const actsPage = () => [
titled("Support", "Do"),
h("p", "Everything is tried first. Begin on a person's page: it fills in the ids."),
h("ul.grid", Object.entries(acts).map(([name, act]) => h("li.card",
h("h2", mayAct(name) ? h("a", {href: actAddress(name, {})}, act.title) : act.title),
h("p", act.about), h("p.quiet", hindrance(act))))),
];
export function actPage(name, query) {
if (!acts[name]) return actsPage();
return [titled("Do", acts[name].title), h("p", acts[name].about),
mayAct(name) ? attempt(name, new URLSearchParams(query)) : h("p.notice.bad", hindrance(acts[name]))];
}
let lastAuthor = "";
function attempt(name, known) {
const {service = "link", fields} = acts[name];
const path = `/admin/v1/${service}/${name}`;
const outcome = h("div", {"aria-live": "polite"});
const identities = h("div");
let changes = 0;
const form = h("form.card", {
onsubmit: instead(preview),
oninput: () => {
changes += 1;
outcome.replaceChildren();
},
onchange: ({target}) => { if (target.name === "mpid") listIdentities(target.value); },
}, Object.entries({...fields, author: "Your name", reason: "Why, such as the number of the case"}).map(([name, title]) => {
if (name === "identities") return h("fieldset", h("legend", title), identities);
const field = {...typed, id: `f-${name}`, name};
const [text, options] = [title].flat();
return h("div.field", h("label", {for: field.id}, text),
options ? h("select", field, Object.entries(options).map(([name, text]) =>
h("option", {value: name, selected: name === known.get(field.name)}, text)))
: h("input", {...field, value: known.get(name) ?? (name === "author" ? lastAuthor : "")}));
}), h("div.buttons", h("button.primary", "Preview")));
if (known.get("mpid")) listIdentities(known.get("mpid"));
async function listIdentities(mpid) {
if (!fields.identities) return;
try {
const profile = await call("POST", "/admin/v1/profiles/resolve", {mpid});
const all = Object.entries(profile.identities).flatMap(([type, values]) => values.map((value) => ({type, value})));
identities.replaceChildren(...all.map((one) => h("label.check",
h("input", {type: "checkbox", name: "identities", value: JSON.stringify(one), checked: known.getAll("identity").includes(one.value)}),
h("span", h("span.quiet", `${one.type} `), value(one.value)))));
} catch (refusal) {
identities.replaceChildren(problem(refusal.message));
}
}
function wanted() {
const given = new FormData(form);
const data = Object.fromEntries([...given].map(([name, text]) => [name, text.trim()]));
if (fields.identities) data.identities = given.getAll("identities").map((one) => JSON.parse(one));
for (const name in fields) if (fields[name][1].true) data[name] = data[name] === "true";
return data;
}
async function preview() {
const data = wanted();
lastAuthor = data.author;
const key = crypto.randomUUID?.() ?? String(Math.random());
const type = `${service}.${name}`;
await during("Trying it in all services…", async () => shown("This would happen", await call("POST", `${path}?dryRun=true`, data),
h("div.buttons", h("button.danger", {onclick: () => carryOut(data, key)}, "Carry it out"),
h("span.quiet", "Nothing is done yet.")),
elsewhere(["a preview", sendLine(type, data, true)], ["the act", sendLine(type, data, false)],
["HTTP, a preview", curlLine("POST", `${path}?dryRun=true`, data)])));
}
const carryOut = (data, key) => during("Carrying it out…", async () => {
const result = await call("POST", path, data, {headers: {"Idempotency-Key": key}});
const {ref} = result;
const isBegun = name === "erase-user" && !result.completedAt;
return shown(isBegun ? "It has begun, and goes on by itself" : "It is done", {result, ref},
may("support") && h("p", h("a", {href: personAddress(data.installId ?? data.userId ?? data.mpid)}, "See the person as it is now")));
}, () => carryOut(data, key));
const during = (words, work, again) => busy(form.parentElement, async () => {
const before = changes;
outcome.replaceChildren(h("p.quiet", words));
let part;
try {
part = await work();
} catch (refusal) {
if (!(refusal instanceof Refusal)) throw refusal;
const isOpen = [0, 504].includes(refusal.status);
if (isOpen) refusal.message = again ? "No answer came. It may have been done, or be done yet." : "No answer came. Nothing was done.";
part = refused(isOpen && again ? "It is not known whether it was done" : "It cannot be done", refusal);
if (isOpen && again) part.append(h("button", {onclick: again}, "Ask again for the same"));
}
if (!again && before !== changes) return;
outcome.replaceChildren(part);
part.scrollIntoView({block: "nearest"});
});
const shown = (title, {result = {}, ref, events, message}, ...more) => card(title,
message && h("p.notice", message),
events?.length > 0 && [h("h3", counted(events.length, "change")), list(events.map(({words}) => words))],
result.devices?.length > 0 && [h("h3", "Devices"), table("Devices", deviceColumns, result.devices)],
result.done && result.requestId !== ref && h("p.notice", "This was done before, on ", moment(result.erasedAt),
" and for another reason: yours is noted nowhere."),
result.done && certificate(result),
events?.length === 0 && !result.devices?.length && !result.done && h("p", "Nothing would change."),
more);
return h("div", form, outcome);
}
const deviceColumns = [
["Device", "deviceId"],
["Profile", "mpid"],
["Session", (row) => row.endsSession ? "ends" : "stays"],
["The next login there finds", (row) => row.nextLogin?.mpid ? value(row.nextLogin.mpid) : "a new profile"],
["and leaves out", (row) => row.nextLogin?.barred?.join(", ") || "nothing"],
];
const places = {inbox: "what services remember of requests", topics: "Kafka's topics", deadLetters: "dead letters", backups: "back-ups"};
const certificate = ({subject, done, heldByOthers, remains}) => [
h("h3", "What goes"),
list(Object.entries(done).map(([service, counts]) =>
`${service}: ${Object.entries(counts).map(([what, count]) => `${what} ${count}`).join(", ")}`)),
h("h3", "What stays"),
list([
["the ids, so that nothing brings them back: ", join([...subject.userIds, ...subject.mpids])],
`${counted(heldByOthers, "profile")} of others with the same external id`,
...remains.map(({place, until}) => [`copies in ${places[place]}`, until && [" until ", moment(until)]]),
]),
];
"""#),
        File(
            name: "api-d2b7c5b67c.js", type: "text/javascript; charset=utf-8",
            text: #"""
let secret = null;
export let holder = null;
export const isDemo = document.documentElement.dataset.mode === "demo";
export class Refusal extends Error {
constructor(status, problem) {
super(problem.detail ?? problem.title ?? "The gateway does not answer.");
Object.assign(this, {status, code: problem.code, ref: problem.ref});
}
}
export async function signIn(key) {
if (/[^\x21-\x7e]/.test(key)) throw new Refusal(0, {detail: "No key has such characters: type quotes and blanks anew."});
secret = key;
holder = await call("GET", "/admin/v1/key");
}
export const may = (scope) => holder.scopes.includes(scope);
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
if (response.status === 401 && holder) location.reload();
if (!response.ok) throw new Refusal(response.status, answer);
return Object.assign(answer, {ref: response.headers.get("X-Request-Id")});
}
export const explain = (id, source, limit, signal) => call("POST", "/admin/v1/people/resolve", {id, limit, ...source && {source}}, {signal});
"""#),
        File(
            name: "app-4b1fece4cb.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { holder, isDemo, may, signIn } from "./api-d2b7c5b67c.js";
import { busy, h, heading, instead, personAddress, problem, refused, say, typed, value } from "./dom-e99cf799e3.js";
import { actPage, actsPage } from "./act-41c49c5a76.js";
import { commandPage } from "./decisions-fb8cd85938.js";
import { lettersPage, nowPage } from "./deployment-2a69aaa4e8.js";
import { personPage } from "./person-7cd72c8795.js";
const main = document.getElementById("main");
const search = searchBox("search");
let leaving = new AbortController();
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
document.getElementById("out").addEventListener("click", () => location.reload());
document.querySelector(".skip").addEventListener("click", instead(() => main.focus()));
addEventListener("hashchange", show);
show();
"""#),
        File(
            name: "console-8f6f87e327.css", type: "text/css; charset=utf-8",
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
--good:light-dark(#17693a,#74d39a);
--good-ground:light-dark(#e5f4ea,#12301f);
--warn:light-dark(#7a4d00,#f0c069);
--warn-ground:light-dark(#fdf3dc,#33270c);
--bad:light-dark(#ad1f1f,#ff9b94);
--bad-ground:light-dark(#fcebea,#3a1819);
font:16px/1.5 system-ui,sans-serif;
background:var(--ground);
color:var(--ink);
}
*{box-sizing:border-box;margin:0}
main{max-width:72rem;margin:auto;padding:1.5rem 1.25rem 4rem;outline:none}
h1,h2,h3,h4{line-height:1.25}
h1{font-size:1.7rem;overflow-wrap:anywhere;outline:none}
h2{font-size:1.1rem;margin-bottom:0.75rem}
h3,h4{font-size:0.95rem;margin:1rem 0 0.4rem;color:var(--quiet)}
p,.title{margin-bottom:0.75rem}
a{color:var(--link)}
:focus-visible:not(h1){outline:3px solid var(--link);outline-offset:2px;border-radius:4px}
[hidden]{display:none !important}
.visually-hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.skip{position:absolute;left:1rem;top:-4rem;background:var(--card);padding:0.5rem 1rem;z-index:2}
.skip:focus{top:0.5rem}
.quiet{color:var(--quiet);font-weight:400}
.good{--tone:var(--good);--tone-ground:var(--good-ground)}
.bad{--tone:var(--bad);--tone-ground:var(--bad-ground)}
.calm{--tone:var(--edge);--tone-ground:var(--raised)}
.good,.bad{color:var(--tone)}
.value,code,pre,.name{font-family:ui-monospace,monospace;font-size:0.9em;overflow-wrap:anywhere}
h1 .value{font:inherit}
.title p{margin:0}
.bar,.bar nav{display:flex;flex-wrap:wrap;align-items:center;gap:0.5rem 1.25rem}
.bar{padding:0.6rem 1.25rem;background:var(--card);border-bottom:1px solid var(--edge)}
.bar form{flex:1 1 18rem}
.bar nav{gap:0.25rem;margin-left:auto}
.bar a{color:var(--ink);text-decoration:none;padding:0.35rem 0.6rem;border-radius:8px}
.brand b{color:var(--link)}
.bar [aria-current]{background:var(--raised);font-weight:600}
.search{display:flex;gap:0.5rem;max-width:44rem}
.search input{flex:1;min-width:0}
main .search{margin-bottom:2rem;font-size:1.1rem}
input,select,button,.button{font:inherit;color:inherit;border:1px solid var(--quiet);border-radius:8px;background:var(--card);padding:0.4rem 0.75rem}
::placeholder{color:var(--quiet)}
[type="checkbox"]{width:1.2rem;height:1.2rem}
button,.button{background:var(--raised);border-color:var(--edge);cursor:pointer;text-decoration:none;display:inline-block}
button:disabled{opacity:0.6;cursor:progress}
.primary,.danger{background:var(--link);color:var(--card);border-color:transparent;font-weight:600}
.danger{background:var(--bad)}
.small{font-size:0.85rem;padding:0.15rem 0.55rem;white-space:nowrap}
.field,fieldset{margin-bottom:1rem;max-width:36rem}
label,legend{font-weight:600}
.field p{margin-bottom:0.35rem;font-size:0.9rem}
.field input,.field select{width:100%}
fieldset{border:1px solid var(--edge);border-radius:8px;padding:0.5rem 1rem}
.check,.buttons,.head,.line{display:flex;flex-wrap:wrap;gap:0.4rem 0.65rem;align-items:center}
.check{padding:0.3rem 0;font-weight:400;flex-wrap:nowrap}
.buttons{margin:0.75rem 0}
[aria-pressed="true"]{background:var(--ink);color:var(--card)}
.sign-in{max-width:34rem;margin:auto}
.card,.tile{background:var(--card);border:1px solid var(--edge);border-radius:12px;padding:1.1rem 1.25rem;margin-bottom:1rem}
.rule,.service{font-size:0.8rem;background:var(--raised);border-radius:8px;padding:0.1rem 0.6rem;white-space:nowrap}
.notice,.findings li{border-left:4px solid var(--tone,var(--warn));background:var(--tone-ground,var(--warn-ground));color:var(--ink);padding:0.5rem 0.9rem;border-radius:8px;margin-bottom:0.4rem}
.findings li{display:flex;flex-wrap:wrap;gap:0.3rem 0.75rem;align-items:center}
.findings li > span{flex:1 1 18rem}
.plain,.findings,.story,.grid{list-style:none;padding:0}
.plain li + li{margin-top:0.2rem}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr));gap:1rem;margin-bottom:1rem}
.grid .card{margin:0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:0.25rem 1rem}
dt{color:var(--quiet)}
dd{overflow-wrap:anywhere;min-width:0}
.tiles{grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:1rem;margin-bottom:1rem}
.tile{margin:0;padding:0.75rem 1rem}
.tile dd{font-size:1.45rem;font-weight:650}
.tile a{color:inherit}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:0.92rem}
th,td{text-align:left;vertical-align:top;padding:0.45rem 0.9rem 0.45rem 0;border-bottom:1px solid var(--edge)}
thead th{color:var(--quiet);white-space:nowrap}
tbody tr:last-child > *{border-bottom:0}
.number{text-align:right}
.number,time{white-space:nowrap;font-variant-numeric:tabular-nums}
td .value{overflow-wrap:break-word}
td .small{margin:0 0.35rem 0.25rem 0}
.graph{display:block;max-width:100%;height:auto;margin:auto}
.node rect{fill:var(--tone-ground,var(--raised));stroke:var(--tone,var(--edge))}
:is(.user,.profile) rect{fill:var(--tone-ground,var(--card));stroke:var(--tone,var(--link));stroke-width:1.5}
.node text{fill:var(--ink);font-size:13px}
.node .note{fill:var(--quiet);font-size:11.5px}
path{fill:none;stroke:var(--quiet);stroke-width:1.5}
.over{stroke-dasharray:4 5}
.entry,.silence{position:relative;border-left:2px solid var(--edge);padding:0 0 1.1rem 1.25rem;margin-left:0.4rem;color:var(--ink);overflow-wrap:anywhere}
.entry::before{content:"";position:absolute;left:-7px;top:0.45rem;width:12px;height:12px;border-radius:50%;background:var(--tone,var(--good));border:2px solid var(--card)}
.entry.bad::before{border-radius:2px}
.silence,.head time{color:var(--quiet);font-size:0.9rem}
.outcome{margin:0.15rem 0;font-weight:600}
.bad .outcome{color:var(--bad)}
details{margin-top:0.35rem}
summary{color:var(--quiet);cursor:pointer;width:max-content;padding:0.15rem 0}
.details,.line{background:var(--raised);border-radius:8px;padding:0.5rem 0.9rem;margin-top:0.4rem;font-size:0.92rem}
pre{margin-bottom:0.6rem;max-height:18rem;overflow:auto;white-space:pre-wrap}
.elsewhere{margin-top:1.5rem}
.line code{flex:1 1 20rem}
@media (max-width:40rem){
main{padding:1rem 0.75rem 3rem}
.bar form{order:1;flex-basis:100%}
.bar nav{margin:0}
.graph,td:has(> div:empty){display:none !important}
.scroll{
& thead{display:none}
& :is(tbody,tr,td){display:block}
& tr{padding:0.5rem 0}
& tr + tr{border-top:1px solid var(--edge)}
& td{border:0;padding:0.15rem 0;display:grid;grid-template-columns:7rem 1fr;text-align:left;white-space:normal}
& td::before{content:attr(data-title);color:var(--quiet)}
& .value{overflow-wrap:anywhere}
}
}
"""#),
        File(
            name: "decisions-fb8cd85938.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { explain } from "./api-d2b7c5b67c.js";
import { card, counted, duration, h, join, list, moment, problem, table, titled, value } from "./dom-e99cf799e3.js";
import { curlLine, elsewhere, explainLine } from "./shell-38c8c5f769.js";
const pause = 3600_000;
const choices = [
["What changed", ({words}) => words.isShown],
["Refusals", ({outcome}) => outcome === "rejected"],
["All decisions", () => true],
];
export function story(decisions) {
const place = h("div");
const show = (chosen) => {
const steps = decisions.filter(choices[chosen][1]);
place.replaceChildren(
h("div.buttons", {role: "group", "aria-label": "Which decisions are shown"}, choices.map(([title, filter], index) =>
h("button", {"aria-pressed": String(index === chosen), onclick: () => {
show(index);
place.querySelector("[aria-pressed=true]").focus();
}}, `${title} ${decisions.filter(filter).length}`))),
steps.length ? h("ol.story", entries(steps)) : h("p.quiet", "None that the services remember."));
};
show(0);
return place;
}
function entries(steps) {
let later = null;
return steps.toReversed().flatMap((decision) => {
const silence = later && Date.parse(later.decidedAt) - Date.parse(decision.decidedAt);
const day = decision.decidedAt.slice(0, 10);
const isOtherDay = !later?.decidedAt.startsWith(day);
later = decision;
return [
silence > pause && h("li.silence", `${duration(silence)} in which nothing happened`),
isOtherDay && h("li.day", h("h3", day)),
entry(decision),
];
});
}
function entry(decision) {
const {words} = decision;
return h(["rejected", "expired"].includes(decision.outcome) ? "li.entry.bad" : "li.entry",
h("div.head", moment(decision.decidedAt, false), h("span.service", decision.service), h("strong", words.title),
decision.authId && h("span.quiet", "key ", value(decision.authId)), rule(words.rule)),
words.outcome && h("p.outcome", words.outcome),
list(words.lines),
h("details", h("summary", "Details"), details(decision)));
}
export const missing = ({silent = [], leftOut = []}) => [
silent.length > 0 && problem(`No answer from: ${silent.join(", ")}. What they know is missing here.`),
leftOut.length > 0 && h("p.notice", "Not asked about, because there are too many: ", join(leftOut)),
];
const pages = {L: "link", U: "user", S: "sync", V: "verification"};
export const rule = (number) => number && h("span.rule", {title: `docs/${pages[number[0]]}.md, rule ${number}`}, `rule ${number}`);
export function details({
commandId, source, authId, traceId, type, topic, partition, offset, outcome, reason, hasSecret, result, events, commands,
}) {
const address = `#/command/${encodeURIComponent(commandId)}/${encodeURIComponent(source)}`;
const messages = (what, all) => all.length > 0 && [h("h4", counted(all.length, what)), all.map(({type, data}) =>
[h("code", type), data === null ? h("p.quiet", "too long to be shown here") : json(data)])];
return h("div.details",
changes(events),
h("dl", [
["command", h("a", {href: address}, value(commandId))],
["sent by", [value(source), authId && [", key ", value(authId)]]],
["type", value(type)],
["record", value(`${topic}/${partition}@${offset}`)],
["trace", traceId && value(traceId)],
["outcome", [outcome, reason && [" ", value(reason)]]],
["answer", hasSecret ? "holds a secret, which nobody else is shown" : result && json(result)],
].map(([title, text]) => text && [h("dt", title), h("dd", text)])),
messages("event", events), messages("command to other services", commands));
}
const json = (data) => h("pre", {tabindex: "0"}, JSON.stringify(data, null, 1).split("\n").map((line) => [line, h("br")]));
function changes(events) {
const rows = events.flatMap(({data}) => data ? before(data) : []).filter(Boolean);
return rows.length > 0 && table("What changed", [
["What", ([what]) => what], ["Before", 1], ["After", 2],
], rows);
}
function before({mpid, deviceId, previousMPID, externalId, previousExternalId, installId, status, isActive, removed = [], added = []}) {
const identity = ({type, value}) => `${type} ${value}`;
return [
deviceId && mpid && previousMPID !== mpid && [`user of device ${deviceId}`, previousMPID, mpid],
previousExternalId && ["external id", previousExternalId, externalId],
installId && status && isActive !== undefined
&& [`install ${installId}`, "", `${status}, ${isActive ? "active" : "not active"}`],
...removed.map((one) => [`profile ${mpid}`, identity(one), ""]),
...added.map((one) => [`profile ${mpid}`, "", identity(one)]),
];
}
export async function commandPage(id, source, signal) {
const {decisions, silent} = await explain(id, source, 50, signal);
const own = decisions.filter(({commandId}) => commandId === id);
return [
titled("Command", value(id)),
missing({silent}),
own.length ? own.map(decided) : unknown(),
explainedElsewhere(id, source),
];
}
const decided = (decision) => card(`${decision.words.title}, decided by ${decision.service}`,
h("p", moment(decision.decidedAt), " ", rule(decision.words.rule)),
h(decision.outcome === "rejected" ? "p.notice.bad" : "p.notice.good", decision.words.outcome ?? "done"),
list(decision.words.lines),
details(decision));
const unknown = () => card("No service remembers this command",
h("p", "It never arrived, has another source than the gateway's and the command line's (add ", h("code", "/SOURCE"),
" to the address), became a ", h("a", {href: "#/letters"}, "dead letter"), ", or is forgotten."));
export const explainedElsewhere = (id, source) => elsewhere(["the command line", explainLine(id, source)],
["HTTP", curlLine("POST", "/admin/v1/people/resolve", {id, ...source && {source}})]);
"""#),
        File(
            name: "deployment-2a69aaa4e8.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { call, holder } from "./api-d2b7c5b67c.js";
import { card, duration, h, moment, problem, table, titled, value } from "./dom-e99cf799e3.js";
import { curlLine, elsewhere, lines, quoted } from "./shell-38c8c5f769.js";
const [silence, forgotten] = [30_000, 600_000];
const services = ["gateway", "link", "sync", "user", "verification"];
export function nowPage(signal) {
const place = h("div", h("p.quiet", "Waiting for the first reports…"));
follow(place, signal);
return [titled("Deployment", "Now"), place, elsewhere(
["the command line", "identitybus watch --topic identity.status.v1 --since 30s"],
["HTTP", curlLine("GET", "/admin/v1/status")])];
}
async function follow(place, signal) {
let query = "";
while (!signal.aborted) {
try {
const {at, next, replicas} = await call("GET", `/admin/v1/status${query}`, null, {signal});
query = `?after=${next}`;
const rows = replicas
.map((replica) => ({...replica, silent: Date.parse(at) - Date.parse(replica.time)}))
.filter((replica) => replica.silent < forgotten)
.toSorted((a, b) => a.service.localeCompare(b.service) || a.replica.localeCompare(b.replica));
const stops = () => [...place.querySelectorAll("a, [tabindex]")];
const stop = stops().indexOf(document.activeElement);
place.replaceChildren(rows.length ? page(rows) : nobody());
stops()[stop]?.focus({preventScroll: true});
} catch ({message}) {
place.replaceChildren(problem(`${message} Asked again every five seconds.`));
await new Promise((done) => { setTimeout(done, 5000); });
}
}
}
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
const rate = (number) => number >= 100 ? Math.round(number).toLocaleString("en") : number.toFixed(number >= 10 ? 0 : 1);
const count = ({outcomes}) => sum(Object.values(outcomes));
function page(replicas) {
const here = replicas.filter((replica) => replica.silent < silence);
const decided = here.flatMap((one) => one.decided ?? []);
const all = sum(decided.map(count));
const refused = sum(decided.map(({outcomes}) => outcomes.rejected ?? 0));
const letters = sum(Object.values(Object.fromEntries(here.map((one) => [one.service, one.deadLetters?.open ?? 0]))));
const oldest = Math.max(0, ...here.map((one) => one.oldestSeconds ?? 0));
const ready = here.filter((one) => one.isReady).length;
const unheard = services.filter((name) => !replicas.some(({service}) => service === name));
const wanted = replicas.length + unheard.length;
return h("div",
unheard.length > 0 && h("p.notice.bad", `Nothing is heard of: ${unheard.join(", ")}.`),
h("dl.tiles",
tile("decided", `${rate(sum(decided.map((one) => count(one) / one.seconds)))}/s`),
tile("refused", all ? `${Math.round(100 * refused / all)} %` : "–"),
tile("the oldest waits", oldest < 1 ? "under 1 s" : duration(oldest * 1000), oldest > 30 ? "bad" : "good"),
tile("open dead letters", h("a", {href: "#/letters"}, letters), letters ? "bad" : "good"),
tile("ready", `${ready} of ${wanted}`, ready < wanted ? "bad" : "good")),
card("Replicas", table("Replicas", replicaColumns, replicas)),
card("Refused in the last ten seconds", table("Refused in the last ten seconds", [
["Service", 0], ["Reason", 1], ["Count", 2, "number"],
], refusals(here), "Nothing was refused.")));
}
const tile = (what, number, tone) => h("div.tile", h("dt", what), h(tone ? `dd.${tone}` : "dd", number));
const known = (thing, shown) => thing == null ? "–" : shown(thing);
const replicaColumns = [
["Service", (one) => h("strong", one.service)],
["State", state],
["Decided", (one) => known(one.decided, (decided) => `${rate(count(decided) / decided.seconds)}/s`), "number"],
["Commit", (one) => known(one.decided?.commitMilliseconds, (time) => `${rate(time)} ms`), "number"],
["Waiting", (one) => known(one.waiting, (count) => count.toLocaleString("en")), "number"],
["Oldest", (one) => known(one.oldestSeconds, (time) => `${rate(time)} s`), "number"],
["Dead letters", (one) => known(one.deadLetters, ({open}) => open), "number"],
["Apps file", ({apps}) => [value(apps.digest), !apps.isValid && h("span.bad", ", its newest version is refused")]],
["Version", (one) => `${one.version} (${one.commit.slice(0, 8)})`],
["Since", (one) => moment(one.startedAt)],
["Replica", "replica"],
];
function state({silent, isReady, failing}) {
if (silent >= silence) return h("span.bad", `silent for ${duration(silent)}`);
if (isReady) return h("span.good", "ready");
return h("span.bad", failing.map(({name, detail}) => `${name}: ${detail}`).join("; ") || "not ready");
}
function refusals(replicas) {
const rows = new Map();
for (const {service, decided} of replicas) {
for (const [reason, count] of Object.entries(decided?.reasons ?? {})) {
const before = rows.get(service + reason)?.[2] ?? 0;
rows.set(service + reason, [service, reason, before + count]);
}
}
return [...rows.values()].toSorted((a, b) => b[2] - a[2]);
}
const nobody = () => card("No replica has reported yet", h("p", "They do every ten seconds, unless they do not run, do not reach \
Kafka or may not write there: ", h("code", "identitybus doctor"), " tells."));
export async function lettersPage(signal) {
const {groups, isComplete} = await call("GET", "/admin/v1/dead-letters", null, {signal});
const list = `identitybus dlq list --app ${quoted(holder.app)}`;
return [
titled("Deployment", "Dead letters"),
!isComplete && h("p.notice", "There are more letters than are counted here; the newest are."),
card("By reason",
table("Dead letters by reason", letterColumns, groups, "There is none. Of records that name no app, only keys with the scope admin are told.")),
groups.filter(({open}) => open).map((group) => card(["What can be done: ", group.service, ", ", value(group.reason)], lines(ways(group)))),
elsewhere(["the command line", list], ["each letter", `${list} --each`], ["HTTP", curlLine("GET", "/admin/v1/dead-letters")]),
];
}
const letterColumns = [
["Service", "service"],
["Reason", (row) => h("strong", value(row.reason))],
["Open", (row) => h(row.open ? "span.bad" : "span", row.open), "number"],
["Letters", (row) => row.letters, "number"],
["Oldest open", (row) => row.oldest ? moment(row.oldest) : "–"],
["Newest", (row) => moment(row.newest)],
];
function ways({service, reason, example}) {
const these = `--service ${service} --reason ${quoted(reason)} --app ${quoted(holder.app)}`;
return [
["look at one", `identitybus dlq show ${quoted(example)}`],
["what a replay would do", `identitybus dlq replay ${these} --dry-run`],
["send them again", `identitybus dlq replay ${these} --reason-text "WHY"`],
["say that nobody will", `identitybus dlq dismiss ${these} --reason-text "WHY"`],
];
}
"""#),
        File(
            name: "dom-e99cf799e3.js", type: "text/javascript; charset=utf-8",
            text: #"""
export const visible = (text) => String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (mark) =>
mark.split("").map((unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0")).join(""));
const maker = (create) => (name, ...parts) => {
const [tag, ...classes] = name.split(".");
const element = create(tag);
if (classes.length) element.setAttribute("class", classes.join(" "));
if (parts[0]?.constructor === Object) set(element, parts.shift());
for (const part of parts.flat(Infinity)) {
if (part != null && part !== false) element.append(part instanceof Node ? part : visible(part));
}
return element;
};
export const h = maker((tag) => document.createElement(tag));
export const svg = maker((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
export const typed = {required: true, autocomplete: "off", autocapitalize: "off", spellcheck: "false"};
function set(element, attributes) {
for (const [name, value] of Object.entries(attributes)) {
if (typeof value === "function") element.addEventListener(name.slice(2), value);
else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
}
}
export const instead = (work) => (event) => {
event.preventDefault();
work();
};
export async function busy(place, work) {
const buttons = [...place.querySelectorAll("button")];
const disable = (isDisabled) => buttons.forEach((button) => { button.disabled = isDisabled; });
disable(true);
try { await work(); } finally { disable(false); }
}
export const say = (text) => { document.getElementById("said").textContent = visible(text); };
export const heading = (...text) => h("h1", {tabindex: "-1"}, text);
export const titled = (kind, ...text) => h("div.title", h("p.quiet", kind), heading(text));
export const card = (title, ...parts) => h("section.card", h("h2", title), parts);
export const problem = (...text) => h("p.notice.bad", {role: "alert"}, text);
export const refused = (title, {message, code, ref}) => card(title, problem(message),
h("p.quiet", code && ["reason ", value(code)], ref && [", request ", value(ref)]));
export const list = (items) => h("ul.plain", items.map((item) => h("li", item)));
export const value = (text) => h("bdi.value", text);
export const shown = (text) => text ? value(text) : "–";
export const join = (values) => values.map((one, index) => [index > 0 && ", ", value(one)]);
export const personAddress = (id) => `#/person/${encodeURIComponent(id)}`;
export const person = (id) => id.includes("•••") ? value(id) : h("a", {href: personAddress(id)}, value(id));
export function table(caption, columns, rows, empty) {
if (!rows.length) return h("p.quiet", empty);
const named = (tag, kind) => kind ? `${tag}.${kind}` : tag;
return h("div.scroll", {tabindex: "0", role: "region", "aria-label": caption},
h("table",
h("caption.visually-hidden", caption),
h("thead", h("tr", columns.map(([title, , kind]) => h(named("th", kind), {scope: "col"}, title)))),
h("tbody", rows.map((row) => h("tr", columns.map(([title, content, kind]) =>
h(named("td", kind), {"data-title": title}, h("div", typeof content === "function" ? content(row) : shown(row[content])))))))));
}
export const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
export function duration(milliseconds) {
const seconds = Math.max(0, Math.round(milliseconds / 1000));
const [unit, size] = [["day", 86400], ["hour", 3600], ["minute", 60]].find(([, size]) => seconds >= size) ?? ["second", 1];
return counted(Math.floor(seconds / size), unit);
}
export function moment(text, withDay = true) {
const shown = text.replace("T", " ").replace(/(\.\d+)?Z$/, "");
return h("time", {datetime: text, title: text}, withDay ? shown : shown.slice(11));
}
"""#),
        File(
            name: "graph-c269b59449.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { h, list, person, svg, visible } from "./dom-e99cf799e3.js";
export function relations(rows) {
const nodes = new Map();
const lines = new Map();
const node = (kind, text, more) => {
const id = `${kind} ${text}`;
nodes.set(id, {id, kind, text, ...nodes.get(id), ...more});
return id;
};
const line = (from, to, word, isOver = false) => lines.set(`${from} ${to}`, {from, to, word, isOver});
const tone = (row) => row.isErased || row.isRestricted ? "bad" : "";
const reads = {
"link user": (row) => {
const user = node("user", row.userId, {note: row.isErased ? "erased" : row.externalId ?? "no external id", tone: tone(row)});
if (row.externalId) line(user, node("identity", row.externalId, {note: "external id"}), "is called");
},
"link install": (row) => {
const install = node("install", row.installId, {note: `${row.device}, ${row.activity ?? "another user's"}`,
tone: row.activity === "active" ? "good" : [undefined, "enabled"].includes(row.status) ? "" : "bad"});
if (row.userId) line(node("user", row.userId), install, "is on");
},
"sync profile": (row) => {
const profile = node("profile", row.mpid, {note: row.isErased ? "erased" : row.isRestricted && "restricted", tone: tone(row)});
if (row.userId) line(node("user", row.userId), profile, "is the user of");
for (const {type, value} of row.identities ?? []) {
const isKnown = type === "customerid" && nodes.has(`identity ${value}`);
line(profile, node("identity", value, {note: isKnown ? "external id, customerid" : type}), "is called");
}
for (const other of row.apartFrom ?? []) line(profile, node("profile", other), "is kept apart from", true);
},
"sync device": (row) => {
const device = node("device", row.deviceId);
for (const mpid of row.users ?? []) {
if (mpid !== row.mpid && nodes.has(`profile ${mpid}`)) line(`profile ${mpid}`, device, "was on", true);
}
if (row.mpid) line(node("profile", row.mpid), device, "is on");
},
"verification session": (row) => node("device", row.deviceId, {note: row.state,
tone: {verified: "good", unverified: "bad"}[row.state]}),
};
for (const [kind, read] of Object.entries(reads)) {
for (const {service, row} of rows) if (`${service} ${row.kind}` === kind) read(row);
}
return {nodes: [...nodes.values()], lines: [...lines.values()]};
}
const columns = {identity: 0, user: 1, profile: 1, install: 2, device: 2};
const [width, height, between, gap] = [236, 46, 322, 14];
export function graph({nodes, lines}) {
const rows = [0, 1, 2].map((column) => nodes.filter((node) => columns[node.kind] === column));
const tallness = (nodes) => nodes.length * (height + gap) - gap;
const [wide, tall] = [between * 2 + width + 2, Math.max(...rows.map(tallness)) + 2];
const places = new Map(rows.flatMap((nodes, column) => nodes.map((node, index) =>
[node.id, {x: 1 + column * between, y: (tall - tallness(nodes)) / 2 + index * (height + gap)}])));
return svg("svg.graph", {viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall, role: "img", 
"aria-label": "Who belongs to whom. The list below says the same."},
lines.map(({from, to, isOver}) =>
svg(isOver ? "path.over" : "path", {d: path(places.get(from), places.get(to))})),
nodes.map(({id, kind, text, note, tone}) => svg(`g.node.${kind}${tone ? `.${tone}` : ""}`,
{transform: `translate(${places.get(id).x} ${places.get(id).y})`},
svg("title", `${kind} ${text}`),
svg("rect", {width, height, rx: 8}),
svg("text.name", {x: 12, y: 20}, short(text, 27)),
svg("text.note", {x: 12, y: 36}, short(note ? `${kind}, ${note}` : kind, 34)))));
}
function path(from, to) {
const [left, right] = from.x <= to.x ? [from, to] : [to, from];
const [y1, y2] = [left.y + height / 2, right.y + height / 2];
const x1 = left.x + width;
const [x2, bend] = left.x === right.x ? [x1, x1 + 44] : [right.x, (x1 + right.x) / 2];
return `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`;
}
function short(text, length) {
const shown = [...visible(text)];
return shown.length <= length ? shown.join("") : `${shown.slice(0, length - 9).join("")}…${shown.slice(-8).join("")}`;
}
export function relationList({nodes, lines}) {
const all = new Map(nodes.map((node) => [node.id, node]));
const named = ({kind, text}) => [kind !== "identity" && `${kind} `, person(text)];
return h("details", {open: innerWidth < 640}, h("summary", "As a list"),
list(lines.map(({from, to, word}) => [named(all.get(from)), ` ${word} `, named(all.get(to))])));
}
"""#),
        File(
            name: "person-7cd72c8795.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { explain } from "./api-d2b7c5b67c.js";
import { card, duration, h, join, list, moment, table, titled, value } from "./dom-e99cf799e3.js";
import { graph, relationList, relations } from "./graph-c269b59449.js";
import { explainedElsewhere, missing, rule, story } from "./decisions-fb8cd85938.js";
import { actAddress, mayAct } from "./act-41c49c5a76.js";
export async function personPage(asked, signal) {
const found = await explain(asked, null, 200, signal);
const {id, rows, decisions} = found;
if (!rows.length && decisions.length && decisions.every(({commandId}) => commandId === id)) {
location.replace(`#/command/${encodeURIComponent(id)}`);
return [];
}
const of = (service, kind) => rows.filter((one) => one.service === service && one.row.kind === kind).map(({row}) => row);
const known = {
decisions, silent: found.silent, users: of("link", "user"), installs: of("link", "install"), profiles: of("sync", "profile"),
devices: devices([...of("sync", "device"), ...of("verification", "session")]),
others: rows.filter(({service, row}) => service === "user" || row.kind === "identity" || row.kind === "hold"),
};
const drawn = relations(rows);
return [
titled("Person", value(name(known, id) ?? id)),
missing(found),
rows.length || decisions.length ? [
card("What stands out", findings(known)),
drawn.nodes.length > 1 && card("Who belongs to whom", graph(drawn), relationList(drawn)),
card("Now", now(known)),
card("How it came to be so",
h("p.quiet", "Newest first, times in UTC. ", found.hasMore && "There are older decisions, which are not shown."),
story(decisions)),
] : unknown(),
explainedElsewhere(asked),
];
}
const devices = (rows) => Object.values(Object.groupBy(rows, ({deviceId}) => deviceId)).map((all) => Object.assign({}, ...all));
const valuesOf = (profile, type) => (profile.identities ?? []).filter((one) => one.type === type).map((one) => one.value);
function name({users, profiles}, id) {
const holders = profiles.filter((profile) => profile.identities?.some(({value}) => value === id));
const known = (type) => (holders.length ? holders : profiles).flatMap((profile) => valuesOf(profile, type));
return users.find((user) => !user.isErased && user.externalId)?.externalId ?? known("customerid")[0] ?? known("email")[0];
}
const finders = [
({profiles}) => profiles.flatMap((profile) => ["customerid", "email"].map((type) => {
const values = valuesOf(profile, type);
return values.length > 1 && finding("bad", ["Profile ", value(profile.mpid), ` has ${values.length} values of ${type}: `,
join(values), ". Two people may be in one profile."], ["detach", {mpid: profile.mpid}, "Take them apart"]);
})),
({profiles, devices, decisions}) => decisions.flatMap(({type, events, decidedAt}, index) =>
type === "identity.sync.modify.v1" ? events.flatMap(({data}) => (data?.added ?? []).map((one) => {
const {mpid} = data;
if (!profiles.some((profile) => profile.mpid === mpid && valuesOf(profile, one.type).includes(one.value))) return;
const arrival = (id) => decisions.findIndex((one) => one.events.some(({data}) => data?.mpid === mpid && data.deviceId === id));
const followed = devices.map(({deviceId}) => deviceId).filter((id) => arrival(id) > index);
return finding(followed.length ? "warn" : "calm", [moment(decidedAt), ` the app said ${one.type} `, value(one.value),
" of profile ", value(mpid), followed.length > 0 && ["; then ", join(followed), " came to it"], "."],
["detach", {mpid, identity: one.value}, "Take them apart"]);
})) : []),
({users, installs}) => users.filter((user) => !user.isErased).map(({userId}) => {
const own = installs.filter((install) => install.userId === userId);
const active = own.find((install) => install.activity === "active");
if (active) return finding("good", ["Active on install ", value(active.installId), ` (${active.device}, ${active.platform}).`]);
const usable = own.find(({status}) => status === "enabled");
return own.length > 0 && finding("warn",
["No install is active: ", join(own.map((install) => `${install.installId} ${why(install)}`)), "."],
usable && ["make-active", {installId: usable.installId}, "Make one active"]);
}),
({users, profiles}) => [...users, ...profiles].map((one) => one.isErased && finding("bad",
[one.mpid ? "Profile " : "User ", value(one.mpid ?? one.userId), " was erased", one.erasedAt && [" on ", moment(one.erasedAt)],
one.isUnderWay ? ", and not yet in all services." : ". What was erased cannot come back."])),
({profiles}) => profiles.map(({mpid, apartFrom}) => apartFrom && finding("warn",
["Profile ", value(mpid), " is kept apart from ", join(apartFrom), "."],
["allow", {mpid, otherMPID: apartFrom[0]}, "Let them meet again"])),
({profiles}) => profiles.map(({mpid, isRestricted}) => isRestricted && finding("bad",
["What is known of profile ", value(mpid), " is kept and not used."],
["restrict", {mpid, isRestricted: false}, "End the restriction"])),
({decisions}) => {
const refused = decisions.findLast(({outcome}) => outcome === "rejected");
return refused && finding("bad", ["Last refused ", duration(Date.now() - Date.parse(refused.decidedAt)), " ago: ",
refused.words.title, ", ", refused.words.outcome?.replace(/^refused, /, "") ?? refused.reason, " ", rule(refused.words.rule)]);
},
];
function findings(known) {
const found = finders.flatMap((find) => find(known)).filter(Boolean);
return found.length ? h("ul.findings", found) : h("p.quiet", known.silent.length ? "Nothing that is known." : "Nothing.");
}
const finding = (tone, text, wanted) => h(`li.${tone}`, h("span", text), wanted && act(...wanted));
const act = (name, data, word) => mayAct(name) && h("a.button.small", {href: actAddress(name, data)}, word);
const because = {restricted: "is restricted", disabled: "is disabled", superseded: "was superseded", waitsForPhone: "waits behind a phone", none: "has no user"};
const why = (install) => install.status ? because[install.inactiveBecause ?? install.activity] ?? `is ${install.activity}` : "another user's";
const presence = (row) => row.isErased ? "erased" : row.isRestricted ? "restricted" : "present";
function now({users, installs, profiles, devices, others}) {
const tables = [
["Users", users, [
["User", "userId"],
["External id", "externalId"],
["State", presence],
["Do", ({userId, externalId, isErased}) => !isErased && [act("change-external-id", {userId}, "Change external id"),
externalId && act("unlink-user", {userId}, "Take external id"), act("erase-user", {userId}, "Erase")]],
]],
["Installs", installs, [
["Install", "installId"],
["Device", (row) => `${row.device}, ${row.platform}`],
["State", (row) => row.activity === "active" ? h("strong.good", "active") : why(row)],
["Do", ({installId, status, activity, userId}) => status && [
activity !== "active" && userId && act("make-active", {installId}, "Make active"),
status === "enabled" ? act("set-install-status", {installId, status: "disabled"}, "Disable")
: act("set-install-status", {installId, status: "enabled"}, "Enable")]],
]],
["Profiles", profiles, [
["Profile", "mpid"],
["Identities", (row) => row.identities?.length
? list(row.identities.map((one) => [h("span.quiet", one.type, " "), value(one.value)])) : "none"],
["State", presence],
["Seen", (row) => row.lastSeen && [moment(row.firstSeen), " to ", moment(row.lastSeen)]],
["Do", ({mpid, isErased, isRestricted}) => !isErased && [act("detach", {mpid}, "Take apart"),
act("restrict", {mpid, isRestricted: !isRestricted}, isRestricted ? "End restriction" : "Restrict")]],
]],
["Devices", devices, [
["Device", "deviceId"],
["Current user", (row) => row.mpid ? value(row.mpid) : "nobody"],
["Session", (row) => row.state ?? "–"],
["Seen there", (row) => row.users ? list(row.users.map(value)) : "–"],
]],
];
return [
tables.map(([title, rows, columns]) => rows.length > 0 && [h("h3", title), table(title, columns, rows)]),
others.length > 0 && h("details", h("summary", "What else the services hold"), list(others.map(({words}) => words))),
];
}
const unknown = () => card("No service of this app knows this id",
h("ul",
h("li", "It was never seen: a typing error (capitals count), or a request that never arrived."),
h("li", "It was refused for its signature or its form, and is a ", h("a", {href: "#/letters"}, "dead letter"), "."),
h("li", "It is another app's. This key sees one app only."),
h("li", "It was erased, or forgotten by retention.")));
"""#),
        File(
            name: "shell-38c8c5f769.js", type: "text/javascript; charset=utf-8",
            text: #"""
import { h, say } from "./dom-e99cf799e3.js";
import { holder } from "./api-d2b7c5b67c.js";
export const quoted = (text) => /^[\w@%+=:,.\/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
const asked = () => `--app ${quoted(holder.app)} --key-id ${quoted(holder.key)}`;
export const explainLine = (id, source) =>
`identitybus explain ${asked()}${source ? ` --source ${quoted(source)}` : ""} ${id.startsWith("-") ? "-- " : ""}${quoted(id)}`;
export const sendLine = (type, data, isDryRun) =>
`identitybus send ${type} ${asked()} ${isDryRun ? "--dry-run" : "--wait 20"} --data ${quoted(JSON.stringify(data))}`;
export const curlLine = (method, path, body) =>
`curl -s ${method === "GET" ? "" : `-X ${method} `}${quoted(location.origin + path)} -H "Authorization: Bearer $KEY"`
+ (body ? ` -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))}` : "");
export const elsewhere = (...pairs) => h("details.elsewhere", h("summary", "The same from a shell"), lines(pairs));
export const lines = (pairs) => pairs.map(([what, line]) => h("div.line",
h("span.quiet", what), h("code", {tabindex: "0"}, line),
h("button.small", {"aria-label": `Copy the line for ${what}`, onclick: ({target}) => copy(line, target)}, "Copy")));
async function copy(line, button) {
try {
await navigator.clipboard.writeText(line);
button.textContent = "Copied";
} catch {
button.textContent = "Not allowed here: select the line";
}
say(button.textContent);
}
"""#),
    ]
}
