// SPDX-License-Identifier: Apache-2.0

// What the page shows, as lines for a shell: of the command line, and of HTTP.

import { h, say } from "./dom.js";
import { holder } from "./api.js";

export const quoted = (text) => /^[\w@%+=:,.\/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

const asked = () => `--app ${quoted(holder.app)} --key-id ${quoted(holder.key)}`;

export const explainLine = (id, source) =>
  `identitybus explain ${asked()}${source ? ` --source ${quoted(source)}` : ""} ${id.startsWith("-") ? "-- " : ""}${quoted(id)}`;

export const sendLine = (type, data, isDryRun) =>
  `identitybus send ${type} ${asked()} ${isDryRun ? "--dry-run" : "--wait 20"} --data ${quoted(JSON.stringify(data))}`;

/** The key stands in a variable: a line is copied into chats and histories. */
export const curlLine = (method, path, body) =>
  `curl -s ${method === "GET" ? "" : `-X ${method} `}${quoted(location.origin + path)} -H "Authorization: Bearer $KEY"`
  + (body ? ` -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))}` : "");

export const elsewhere = (...pairs) => h("details.elsewhere", h("summary", "The same from a shell"), lines(pairs));

export const lines = (pairs) => pairs.map(([what, line]) => h("div.line",
  h("span.quiet", what), h("code", {tabindex: "0"}, line),
  h("button.small", {"aria-label": `Copy the line for ${what}`, onclick: ({target}) => copy(line, target)}, "Copy")));

async function copy(line, button) {
  try {
    await navigator.clipboard.writeText(line);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed here: select the line";
  }
  say(button.textContent);
}
