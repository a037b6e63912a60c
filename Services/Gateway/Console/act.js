// SPDX-License-Identifier: Apache-2.0

// What can be done about a person. Everything is tried first: a dry run of all services says what would come of it, and only
// what was shown can be carried out.

import { call, holder, may, Refusal } from "./api.js";
import { card, counted, h, join, list, moment, personAddress, problem, refused, table, titled, value } from "./dom.js";
import { curlLine, elsewhere, sendLine } from "./shell.js";

/** A further act is a further entry. It needs the scope `support`, or another one; author and reason are asked for with each. */
const acts = {
  __proto__: null,
  detach: {
    title: "Take two people apart", service: "sync", vouches: true,
    about: "Some identities leave a profile for a new one, with the devices known by nothing else. The two stay apart from then on.",
    fields: {mpid: "Profile (MPID)", identities: "What leaves, to a new profile"},
  },
  allow: {
    title: "Let two people meet again", service: "sync", vouches: true,
    about: "Ends what keeps two profiles apart. Nothing is merged by it.",
    fields: {mpid: "Profile (MPID)", otherMPID: "The other profile"},
  },
  restrict: {
    title: "Restrict a person", service: "sync", vouches: true,
    about: "What is known of them is kept and not used. Logins go on.",
    fields: {mpid: "Profile (MPID)", isRestricted: ["What is known may", {true: "not be used", false: "be used again"}]},
  },
  "change-external-id": {
    title: "Change an external id", service: "link",
    about: "The person stays the same user. A backend that goes on with the old name is refused.",
    fields: {userId: "User", newExternalId: "New external id", endHold: ["Held for another", {false: "stays so", true: "the hold ends"}]},
  },
  "unlink-user": {
    title: "Take a user's external id", service: "link",
    about: "The person stays on its installs without it, and cannot be given it again.",
    fields: {userId: "User"},
  },
  "make-active": {
    title: "Make an install active", service: "link",
    about: "A person has one: this one becomes it, and the one before is told.",
    fields: {installId: "Install"},
  },
  "set-install-status": {
    title: "Enable or disable an install", service: "link", scope: "admin",
    about: "The app hears of it at its next call.",
    fields: {installId: "Install", status: ["It is to be", {disabled: "disabled", enabled: "enabled"}]},
  },
  "erase-user": {
    title: "Erase a person", service: "link", scope: "user.delete",
    about: "A user goes from all services, for good. Your name and your reason stay: write no name of theirs there.",
    fields: {userId: "User"},
  },
};

function hindrance({scope = "support", vouches, fields}) {
  if (holder.isMasked && fields.identities) return "This key sees values masked, and cannot name what leaves.";
  const lacking = [scope, vouches && holder.enforces && "identity.vouch"].filter((one) => one && !may(one));
  if (lacking.length) return `This key may not: it lacks ${lacking.join(" and ")}.`;
}

export const mayAct = (name) => !hindrance(acts[name]);

export const actAddress = (name, data) => `#/do/${name}?${new URLSearchParams(data)}`;

export const actsPage = () => [
  titled("Support", "Do"),
  h("p", "Everything is tried first. Begin on a person's page: it fills in the ids."),
  h("ul.acts", Object.entries(acts).map(([name, act]) => h("li.card",
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
  const {service, fields} = acts[name];
  const path = `/admin/v1/${service}/${name}`;
  const outcome = h("div", {"aria-live": "polite"});
  const identities = h("div");
  let changes = 0;
  const form = h("form.card", {
    onsubmit: (event) => { event.preventDefault(); preview(); },
    // What was tried is not what stands in the form any more.
    oninput: () => {
      changes += 1;
      outcome.replaceChildren();
    },
    onchange: ({target}) => { if (target.name === "mpid") listIdentities(target.value); },
  }, Object.entries({...fields, author: "Your name", reason: "Why, such as the number of the case"}).map(([name, title]) => {
    if (name === "identities") return h("fieldset", h("legend", title), identities);
    const field = {id: `f-${name}`, name, required: true};
    const [text, options] = [title].flat();
    return h("div.field", h("label", {for: field.id}, text),
      options ? h("select", field, Object.entries(options).map(([name, text]) =>
        h("option", {value: name, selected: name === known.get(field.name)}, text)))
        : h("input", {...field, value: known.get(name) ?? (name === "author" ? lastAuthor : ""), autocomplete: "off", spellcheck: "false"}));
  }), h("div.buttons", h("button.primary", {type: "submit"}, "Preview")));
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
    for (const name of ["isRestricted", "endHold"]) if (fields[name]) data[name] = data[name] === "true";
    return data;
  }

  async function preview() {
    const data = wanted();
    lastAuthor = data.author;
    // The key makes one act of two clicks.
    const key = crypto.randomUUID?.() ?? String(Math.random());
    const type = `${service}.${name}`;
    await during("Trying it in all services…", async () => shown("This would happen", await call("POST", `${path}?dryRun=true`, data),
      h("div.buttons", h("button.danger", {type: "button", onclick: () => carryOut(data, key)}, "Carry it out"),
        h("span.quiet", "Nothing is done yet.")),
      elsewhere(["a preview", sendLine(type, data, true)], ["the act", sendLine(type, data, false)],
        ["HTTP, a preview", curlLine("POST", `${path}?dryRun=true`, data)])));
  }

  const carryOut = (data, key) => during("Carrying it out…", async () => {
    const result = await call("POST", path, data, {headers: {"Idempotency-Key": key}});
    // An erasure that takes long has no certificate yet.
    const isBegun = name === "erase-user" && !result.completedAt;
    return shown(isBegun ? "It has begun, and goes on by itself" : "It is done", {result},
      h("p", h("a", {href: personAddress(data.installId ?? data.userId ?? data.mpid)}, "See the person as it is now")));
  }, () => carryOut(data, key));

  /** @param again of an act: it is the same one, so it is done once. */
  async function during(words, work, again) {
    const before = changes;
    const buttons = [...form.parentElement.querySelectorAll("button")];
    buttons.forEach((button) => { button.disabled = true; });
    outcome.replaceChildren(h("p.quiet", words));
    let parts;
    try {
      parts = [await work()];
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      const isOpen = [0, 504].includes(refusal.status);
      if (isOpen) refusal.message = again ? "No answer came. It may have been done, or be done yet." : "No answer came. Nothing was done.";
      parts = [refused(isOpen && again ? "It is not known whether it was done" : "It cannot be done", refusal),
        ...isOpen && again ? [h("button", {type: "button", onclick: again}, "Ask again for the same")] : []];
    }
    buttons.forEach((button) => { button.disabled = false; });
    if (!again && before !== changes) return;
    outcome.replaceChildren(...parts);
    outcome.firstElementChild?.scrollIntoView({block: "nearest"});
  }

  const shown = (title, {result = {}, events, message}, ...more) => card(title,
    message && h("p.notice", message),
    events?.length > 0 && [h("h3", counted(events.length, "change")), list(events.map(({words}) => words))],
    result.devices?.length > 0 && [h("h3", "Devices"), table("Devices", deviceColumns, result.devices)],
    result.done && certificate(result),
    events?.length === 0 && !result.devices?.length && !result.done && h("p", "Nothing else changes."),
    more);

  return h("div", form, outcome);
}

const deviceColumns = [
  ["Device", (row) => value(row.deviceId)],
  ["Profile", (row) => value(row.mpid)],
  ["Session", (row) => row.endsSession ? "ends" : "stays"],
  ["The next login there finds", (row) => row.nextLogin?.mpid ? value(row.nextLogin.mpid) : "a new profile"],
  ["and leaves out", (row) => row.nextLogin?.barred?.join(", ") || "nothing"],
];

const places = {inbox: "what services remember of requests", topics: "Kafka's topics", deadLetters: "dead letters", backups: "back-ups"};

/** What goes with a person, or went, and what does not. */
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
