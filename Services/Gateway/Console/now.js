// SPDX-License-Identifier: Apache-2.0

// How the deployment is doing: what each replica says of itself every ten seconds. The gateway answers when there is
// something new, so the page is never older than that.

import { call } from "./api.js";
import { duration, h, moment, table, value } from "./dom.js";
import { curlLine, elsewhere } from "./shell.js";

/** A replica that has said nothing for so long is away, in milliseconds. */
const silence = 30_000;
/** And after so long nobody wants to hear of it. */
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
    // What is read is not taken away under the reader: the place on the page stays.
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

/** A further column is a further line. */
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
