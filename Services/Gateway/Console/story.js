// SPDX-License-Identifier: Apache-2.0

// How it came to be so: one entry for each decision, with the sentences that the gateway writes of it (the same that
// `identitybus explain` prints). What was refused stands out, and time in which nothing happened takes no room.

import { counted, duration, h, moment, value } from "./dom.js";

/** Silence that is worth a line of its own, in milliseconds. */
const pause = 3600_000;

export class Story extends HTMLElement {
  #decisions = [];
  #shown = "steps";

  /** @param decisions the oldest first. */
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

/** The newest first: whoever complains means today. */
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

/** What an answer lacks. */
export function missing({silent = [], leftOut = []}) {
  return [
    silent.length > 0 && h("p.notice.bad", {role: "alert"},
      `No answer from: ${silent.join(", ")}. What they know is missing here.`),
    leftOut.length > 0 && h("p.notice", "Not asked about, because there are too many: ", leftOut.map((one) => [value(one), " "])),
  ];
}

/** Where the rule stands that decided. */
export function rule(number) {
  if (!number) return null;
  const page = {L: "link", U: "user", S: "sync", V: "verification"}[number[0]];
  return h("span.rule", {title: `docs/${page}.md, rule ${number}`}, `rule ${number}`);
}

/** A decision as the services have it. */
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

/** Before and after, of what the decision changed. A further column is a further member of each pair. */
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
