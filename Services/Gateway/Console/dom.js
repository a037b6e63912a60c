// SPDX-License-Identifier: Apache-2.0

// Makes elements. Whatever a producer has written reaches the page as text: there is no way from here to markup, and the
// content policy of the page (Trusted Types `'none'`) allows none.

const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** The text with `\u…` in place of what could steer or deceive a reader, as the command line shows it. */
export function visible(text) {
  return String(text).replace(unsafe, (mark) => "\\u" + mark.charCodeAt(0).toString(16).padStart(4, "0"));
}

/** `h("p.note", {id: "x", onclick: f}, "text", element, null)`. */
export function h(name, ...parts) {
  const [tag, ...classes] = name.split(".");
  return fill(document.createElement(tag), classes, parts);
}

/** The same, of a drawing. */
export function svg(name, ...parts) {
  const [tag, ...classes] = name.split(".");
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), classes, parts);
}

function fill(element, classes, parts) {
  if (classes.length) element.setAttribute("class", classes.join(" "));
  const isPart = (part) => part instanceof Node || Array.isArray(part) || typeof part !== "object" || part === null;
  if (parts.length && !isPart(parts[0])) set(element, parts.shift());
  add(element, parts);
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
}

function add(element, parts) {
  for (const part of parts.flat(Infinity)) {
    if (part == null || part === false) continue;
    element.append(part instanceof Node ? part : document.createTextNode(visible(part)));
  }
}

/** Says something to whoever does not see the page. */
export function say(text) {
  document.getElementById("said").textContent = visible(text);
}

/** A value of somebody else: it has its own direction of writing, and may be broken anywhere. */
export const value = (text) => h("bdi.value", text);

/** A table. A column is `[title, row => content, class?]`; what has no rows is said in words. */
export function table(caption, columns, rows, empty) {
  if (!rows.length) return h("p.quiet", empty);
  const cell = (row) => ([title, content, kind]) =>
    h(kind ? `td.${kind}` : "td", {"data-title": title}, h("div", content(row)));
  return h("div.scroll", {tabindex: "0", role: "region", "aria-label": caption},
    h("table",
      h("caption.visually-hidden", caption),
      h("thead", h("tr", columns.map(([title, , kind]) => h(kind ? `th.${kind}` : "th", {scope: "col"}, title)))),
      h("tbody", rows.map((row) => h("tr", columns.map(cell(row)))))));
}

/** `1 decision`, `2 decisions`. */
export const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

/** How long something took, or ago it was, in one number: `3 days`. */
export function duration(milliseconds) {
  const seconds = Math.round(milliseconds / 1000);
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (seconds >= size) return counted(Math.floor(seconds / size), unit);
  }
  return counted(Math.max(0, seconds), "second");
}

/** The moment in UTC, as the command line writes it. */
export function moment(text, withDay = true) {
  const shown = String(text).replace("T", " ").replace(/(\.\d+)?Z$/, "");
  return h("time", {datetime: text, title: text}, withDay ? shown : shown.slice(11));
}
