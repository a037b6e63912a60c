// SPDX-License-Identifier: Apache-2.0

// Who it is now, what stands out, and how it came to be so.

import { explain } from "./api.js";
import { card, duration, h, join, list, moment, table, titled, value } from "./dom.js";
import { graph, relationList, relations } from "./graph.js";
import { explainedElsewhere, missing, rule, story } from "./decisions.js";
import { actAddress, mayAct } from "./act.js";

export async function personPage(asked, signal) {
  const found = await explain(asked, null, 200, signal);
  // The id as the key may see it.
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

/** What a person is called: whoever holds the id comes first, since others may have been taken apart from them. */
function name({users, profiles}, id) {
  const holders = profiles.filter((profile) => profile.identities?.some(({value}) => value === id));
  const known = (type) => (holders.length ? holders : profiles).flatMap((profile) => valuesOf(profile, type));
  return users.find((user) => !user.isErased && user.externalId)?.externalId ?? known("customerid")[0] ?? known("email")[0];
}

/** What is looked for first, each with what can be done. A further finding is a further function. */
const finders = [
  ({profiles}) => profiles.flatMap((profile) => ["customerid", "email"].map((type) => {
    const values = valuesOf(profile, type);
    return values.length > 1 && finding("bad", ["Profile ", value(profile.mpid), ` has ${values.length} values of ${type}: `,
      join(values), ". Two people may be in one profile."], ["detach", {mpid: profile.mpid}, "Take them apart"]);
  })),
  // An app changes e-mails every day; somebody else came by one where a device followed.
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

/** The tables. A further column is a further line. */
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
