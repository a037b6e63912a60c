// SPDX-License-Identifier: Apache-2.0

// What can be done about a person. Everything is tried first: a dry run of all services says what would come of it as things
// are, and only then it can be carried out.

import { call, holder, may, Refusal } from "./api.js";
import { busy, card, counted, h, instead, join, list, moment, personAddress, problem, refused, table, titled, typed, value } from "./dom.js";
import { curlLine, elsewhere, sendLine } from "./shell.js";

/** A further act is a further entry: of the service `link` and with the scope `support`, unless it says otherwise. */
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
    // What was tried is not what stands in the form any more.
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
    // The key makes one act of two clicks.
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
    // An erasure that takes long has no certificate yet.
    const isBegun = name === "erase-user" && !result.completedAt;
    return shown(isBegun ? "It has begun, and goes on by itself" : "It is done", {result, ref},
      may("support") && h("p", h("a", {href: personAddress(data.installId ?? data.userId ?? data.mpid)}, "See the person as it is now")));
  }, () => carryOut(data, key));

  /** @param again of an act: it is the same one, so it is done once. */
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
