// SPDX-License-Identifier: Apache-2.0

// What support can do about a person. Everything is tried first: a dry run of all services says what would come of it, and
// only what was shown can be carried out. What is done has an author and a reason.

import { call, holder, may, Refusal } from "./api.js";
import { counted, h, say, table, value } from "./dom.js";
import { curlLine, elsewhere, sendLine } from "./shell.js";

const text = (name, title, hint = "") => ({name, title, hint});
const choice = (name, title, options) => ({name, title, options});

/** A further act is a further entry: its call on the admin port, and what is asked for. */
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
  /** What was tried: this and nothing else can be carried out. */
  #tried = null;

  /** @param known what the address fills in. */
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

  /** What was tried is not what stands in the form any more. */
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
      // The key makes one act of two clicks.
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

/** A further column is a further line. */
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
