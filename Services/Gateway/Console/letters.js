// SPDX-License-Identifier: Apache-2.0

// Dead letters of the app by reason: records that a service could not take. What becomes of them is decided on the command
// line, where their text is shown to whoever may read it.

import { call, holder } from "./api.js";
import { h, moment, table, value } from "./dom.js";
import { curlLine, elsewhere, quoted } from "./shell.js";

export async function lettersPage(signal) {
  const {groups, isComplete} = await call("GET", "/admin/v1/dead-letters", null, {signal});
  const list = `identitybus dlq list --app ${quoted(holder.app)}`;
  return [
    h("div.title", h("p.quiet", "Deployment"), h("h1", {tabindex: "-1"}, "Dead letters")),
    !isComplete && h("p.notice", "There are more letters than are counted here; the newest are."),
    h("section.card",
      h("h2", "By reason"),
      table("Dead letters by reason", columns, groups, "There is none. Of records that name no app, only keys with the scope admin are told.")),
    h("section.card", h("h2", "What can be done"), h("ol.steps",
      step("Look at one: what came, and what a replay would do now.", "identitybus dlq show link/6@0"),
      step("Send a reason's again, each once and in order; first with --dry-run.",
        `identitybus dlq replay --reason REASON --app ${quoted(holder.app)} --reason-text "…"`),
      step("Or say that nobody will.", `identitybus dlq dismiss link/6@0 --reason-text "…"`))),
    elsewhere(["the command line", list], ["each letter", `${list} --each`],
      ["HTTP", curlLine("GET", "/admin/v1/dead-letters")]),
  ];
}

/** A further column is a further line. */
const columns = [
  ["Service", (row) => row.service],
  ["Reason", (row) => h("strong", value(row.reason))],
  ["Open", (row) => h(row.open ? "span.bad" : "span", row.open), "number"],
  ["Letters", (row) => row.letters, "number"],
  ["Oldest open", (row) => row.oldest ? moment(row.oldest) : "–"],
  ["Newest", (row) => moment(row.newest)],
  ["One of them", (row) => value(row.example)],
];

const step = (text, line) => h("li", text, h("br"), h("code", {tabindex: "0"}, line));
