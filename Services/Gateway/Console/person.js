// SPDX-License-Identifier: Apache-2.0

// Who it is now, what stands out, and how it came to be so.

import { explain } from "./api.js";
import { counted, duration, h, moment, table, value } from "./dom.js";
import { graph, list, relations } from "./graph.js";
import { missing, rule } from "./story.js";
import { curlLine, elsewhere, explainLine } from "./shell.js";
import { actAddress, mayAct } from "./act.js";

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

/** What a person is called by people: whoever holds the id comes first, since others may have been taken apart from them. */
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

/** What whoever helps people looks for first, each with what can be done. A further finding is a further function. */
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
/** Of somebody else's install nothing more is told. */
const why = (install) => install.status ? because[install.inactiveBecause] ?? `is ${install.activity}` : "another user's";

/** The tables. A further column is a further `[title, row => content]`. */
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

/** What the two services say of one device is one row. */
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
