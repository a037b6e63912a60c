// SPDX-License-Identifier: Apache-2.0

// One command: what came, who sent it, what each service decided and told.

import { explain } from "./api.js";
import { h, moment, value } from "./dom.js";
import { details, missing, rule } from "./story.js";
import { curlLine, elsewhere, explainLine } from "./shell.js";

export async function commandPage(id, source, signal) {
  const {decisions: found, silent} = await explain(id, source, 50, signal);
  const decisions = found.filter(({commandId}) => commandId === id);
  return [
    h("div.title", h("p.quiet", "Command"), h("h1", {tabindex: "-1"}, value(id))),
    missing({silent}),
    decisions.length ? decisions.map(decided) : unknown(id),
    elsewhere(
      ["the command line", explainLine(id, source)],
      ["HTTP", curlLine("POST", "/admin/v1/people/resolve", {id, ...(source ? {source} : {})})]),
  ];
}

function decided(decision) {
  const {words} = decision;
  return h("section.card",
    h("h2", `${words.title}, decided by ${decision.service}`),
    h("p", moment(decision.decidedAt), " ", rule(words.rule)),
    h(decision.outcome === "rejected" ? "p.notice.bad" : "p.notice.good", words.outcome ?? "done"),
    h("ul.plain", words.lines.map((line) => h("li", line))),
    details(decision));
}

function unknown(id) {
  return h("section.card.empty", h("h2", "No service remembers this command"),
    h("p", "It never arrived, has another source than the gateway's and the command line's (add ", h("code", "/SOURCE"),
      " to the address), became a ", h("a", {href: "#/letters"}, "dead letter"), ", or is forgotten."),
    h("p", h("a", {href: `#/person/${encodeURIComponent(id)}`}, "Look for a person with this id")));
}
