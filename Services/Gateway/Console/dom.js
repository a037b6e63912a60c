// SPDX-License-Identifier: Apache-2.0

// Makes elements. Whatever a producer has written reaches the page as text: there is no way from here to markup, and the
// content policy of the page (Trusted Types `'none'`) allows none.

/** The text with `\u…` in place of what nobody sees, or could deceive a reader, as the command line shows it. */
export const visible = (text) => String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (mark) =>
  mark.split("").map((unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0")).join(""));

const maker = (create) => (name, ...parts) => {
  const [tag, ...classes] = name.split(".");
  const element = create(tag);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  if (parts[0]?.constructor === Object) set(element, parts.shift());
  for (const part of parts.flat(Infinity)) {
    if (part != null && part !== false) element.append(part instanceof Node ? part : visible(part));
  }
  return element;
};

/** `h("p.note", {id: "x", onclick: f}, "text", element, null)`. */
export const h = maker((tag) => document.createElement(tag));
export const svg = maker((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));

export const typed = {required: true, autocomplete: "off", autocapitalize: "off", spellcheck: "false"};

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
}

/** Instead of what the browser does. */
export const instead = (work) => (event) => {
  event.preventDefault();
  work();
};

/** Does what takes a while; nothing else is begun there meanwhile. */
export async function busy(place, work) {
  const buttons = [...place.querySelectorAll("button")];
  const disable = (isDisabled) => buttons.forEach((button) => { button.disabled = isDisabled; });
  disable(true);
  try { await work(); } finally { disable(false); }
}

/** To whoever does not see the page. */
export const say = (text) => { document.getElementById("said").textContent = visible(text); };

/** By which a page is announced. */
export const heading = (...text) => h("h1", {tabindex: "-1"}, text);
export const titled = (kind, ...text) => h("div.title", h("p.quiet", kind), heading(text));
export const card = (title, ...parts) => h("section.card", h("h2", title), parts);
export const problem = (...text) => h("p.notice.bad", {role: "alert"}, text);
export const refused = (title, {message, code, ref}) => card(title, problem(message),
  h("p.quiet", code && ["reason ", value(code)], ref && [", request ", value(ref)]));
export const list = (items) => h("ul.plain", items.map((item) => h("li", item)));

/** A value of somebody else: it has its own direction of writing, and may be broken anywhere. */
export const value = (text) => h("bdi.value", text);
export const shown = (text) => text ? value(text) : "–";
export const join = (values) => values.map((one, index) => [index > 0 && ", ", value(one)]);

export const personAddress = (id) => `#/person/${encodeURIComponent(id)}`;
/** What is masked leads to nobody. */
export const person = (id) => id.includes("•••") ? value(id) : h("a", {href: personAddress(id)}, value(id));

/** A table. A column is `[title, member of the row, or row => content, class?]`; no rows are said in words. */
export function table(caption, columns, rows, empty) {
  if (!rows.length) return h("p.quiet", empty);
  const named = (tag, kind) => kind ? `${tag}.${kind}` : tag;
  return h("div.scroll", {tabindex: "0", role: "region", "aria-label": caption},
    h("table",
      h("caption.visually-hidden", caption),
      h("thead", h("tr", columns.map(([title, , kind]) => h(named("th", kind), {scope: "col"}, title)))),
      h("tbody", rows.map((row) => h("tr", columns.map(([title, content, kind]) =>
        h(named("td", kind), {"data-title": title}, h("div", typeof content === "function" ? content(row) : shown(row[content])))))))));
}

export const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

export function duration(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const [unit, size] = [["day", 86400], ["hour", 3600], ["minute", 60]].find(([, size]) => seconds >= size) ?? ["second", 1];
  return counted(Math.floor(seconds / size), unit);
}

export function moment(text, withDay = true) {
  const shown = text.replace("T", " ").replace(/(\.\d+)?Z$/, "");
  return h("time", {datetime: text, title: text}, withDay ? shown : shown.slice(11));
}
