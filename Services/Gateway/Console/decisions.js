// SPDX-License-Identifier: Apache-2.0

// Decisions, in the sentences of `identitybus explain`: those about a person as a story, and those of one command.

import { explain } from "./api.js";
import { card, counted, duration, h, join, list, moment, problem, table, titled, value } from "./dom.js";
import { curlLine, elsewhere, explainLine } from "./shell.js";

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

/** The newest first: whoever complains means today. */
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

/** Before and after, of what a decision changed. A further column is a further line. */
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
