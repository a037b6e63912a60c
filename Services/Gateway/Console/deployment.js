// SPDX-License-Identifier: Apache-2.0

// What each replica says of itself every ten seconds; and dead letters.

import { call, holder } from "./api.js";
import { card, duration, h, moment, problem, table, titled, value } from "./dom.js";
import { curlLine, elsewhere, lines, quoted } from "./shell.js";

/** A replica that has said nothing for so long is away, or forgotten; in milliseconds. */
const [silence, forgotten] = [30_000, 600_000];
/** Each has a replica. */
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
      // What the keyboard is on is not taken away.
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
  // Each replica of a service says the same of its letters.
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

/** `[service, reason, count]`, the most frequent first. */
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

/** By reason, with the lines that send them again: that is the work of a program that goes on when a page is closed. */
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

/** For whoever may write to Kafka; `WHY` is theirs to replace. */
function ways({service, reason, example}) {
  const these = `--service ${service} --reason ${quoted(reason)} --app ${quoted(holder.app)}`;
  return [
    ["look at one", `identitybus dlq show ${quoted(example)}`],
    ["what a replay would do", `identitybus dlq replay ${these} --dry-run`],
    ["send them again", `identitybus dlq replay ${these} --reason-text "WHY"`],
    ["say that nobody will", `identitybus dlq dismiss ${these} --reason-text "WHY"`],
  ];
}
