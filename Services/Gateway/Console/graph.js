// SPDX-License-Identifier: Apache-2.0

// Who belongs to whom, as a drawing, and the same as a list. On a phone the drawing would be too small to read: there the
// list stands alone.

import { h, svg, value, visible } from "./dom.js";

/** Nodes and lines of what the services hold now: `{nodes: [{id, kind, text, note, tone}], lines: [{from, to, word}]}`. */
export function relations(rows) {
  const nodes = new Map();
  const lines = new Map();
  const node = (kind, name, more = {}) => {
    const id = `${kind} ${name}`;
    nodes.set(id, {id, kind, text: name, ...nodes.get(id), ...more});
    return id;
  };
  const line = (from, to, word, isOver = false) => lines.set(`${from} ${to}`, {from, to, word, isOver});
  const reads = {
    "link user": (row) => {
      const user = node("user", row.userId, {note: row.isErased ? "erased" : row.externalId ?? "no external id",
        tone: row.isErased || row.isRestricted ? "bad" : ""});
      if (row.externalId) line(user, node("identity", row.externalId, {note: "external id"}), "is called");
    },
    "link install": (row) => {
      const install = node("install", row.installId, {note: `${row.device}, ${row.activity ?? "another user's"}`,
        tone: row.activity === "active" ? "good" : [undefined, "enabled"].includes(row.status) ? "" : "bad"});
      if (row.userId) line(node("user", row.userId), install, "is on");
    },
    "sync profile": (row) => {
      const profile = node("profile", row.mpid, {note: row.isErased ? "erased" : row.isRestricted ? "restricted" : "profile",
        tone: row.isErased || row.isRestricted ? "bad" : ""});
      if (row.userId) line(node("user", row.userId), profile, "is the user of");
      for (const {type, value} of row.identities ?? []) {
        // The external id of the one service and the customer id of the other are one name.
        const isKnown = type === "customerid" && nodes.has(`identity ${value}`);
        line(profile, node("identity", value, isKnown ? {note: "external id, customerid"} : {note: type}), "is called");
      }
      for (const other of row.apartFrom ?? []) line(profile, node("profile", other), "is kept apart from", true);
    },
    "sync device": (row) => {
      const device = node("device", row.deviceId);
      for (const mpid of row.users ?? []) {
        if (mpid !== row.mpid && nodes.has(`profile ${mpid}`)) line(node("profile", mpid), device, "was on", true);
      }
      if (row.mpid) line(node("profile", row.mpid), device, "is on");
    },
    "verification session": (row) => node("device", row.deviceId, {note: row.state,
      tone: row.state === "verified" ? "good" : row.state === "unverified" ? "bad" : ""}),
  };
  // Who is there first is met by what names them.
  const order = Object.keys(reads);
  const kind = ({service, row}) => `${service} ${row.kind}`;
  for (const one of rows.toSorted((a, b) => order.indexOf(kind(a)) - order.indexOf(kind(b)))) reads[kind(one)]?.(one.row);
  return {nodes: [...nodes.values()], lines: [...lines.values()]};
}

const columns = {identity: 0, user: 1, profile: 1, install: 2, device: 2};
const [width, height, gap] = [236, 46, 14];

/** Names on the left, the person in the middle, where they are on the right. */
export function graph({nodes, lines}) {
  const rows = [0, 1, 2].map((column) => nodes.filter((node) => columns[node.kind] === column));
  const tall = Math.max(...rows.map((nodes) => nodes.length)) * (height + gap) - gap;
  const places = new Map();
  rows.forEach((nodes, column) => {
    const free = tall - (nodes.length * (height + gap) - gap);
    nodes.forEach((node, index) => places.set(node.id, {x: 1 + column * 322, y: 1 + free / 2 + index * (height + gap)}));
  });
  const size = [322 * 2 + width + 2, tall + 2];
  return drawing(size, nodes, lines, places, (from, to) => {
    const [left, right] = from.x <= to.x ? [from, to] : [to, from];
    const [y1, y2] = [left.y + height / 2, right.y + height / 2];
    // Two in one column are joined beside it.
    if (left.x === right.x) {
      const x = left.x + width;
      return `M${x} ${y1}C${x + 44} ${y1} ${x + 44} ${y2} ${x} ${y2}`;
    }
    const [x1, x2] = [left.x + width, right.x];
    return `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`;
  });
}

function drawing([wide, tall], nodes, lines, places, path) {
  const label = `${nodes.length} names, people and devices, and who belongs to whom. The list below says the same.`;
  return svg("svg.graph", {viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall, role: "img", "aria-label": label},
    lines.map(({from, to, isOver}) =>
      svg(isOver ? "path.line.over" : "path.line", {d: path(places.get(from), places.get(to))})),
    nodes.map((node) => {
      const {x, y} = places.get(node.id);
      return svg(`g.node.${node.kind}${node.tone ? `.${node.tone}` : ""}`, {transform: `translate(${x} ${y})`},
        svg("title", `${node.kind} ${node.text}`),
        svg("rect", {width, height, rx: 8}),
        svg("text.name", {x: 12, y: 20}, short(node.text, 27)),
        svg("text.note", {x: 12, y: 36}, short(`${node.kind}${node.note && node.note !== node.kind ? `, ${node.note}` : ""}`, 34)));
    }));
}

/** Both ends say more than the first one: ids differ at their ends. */
function short(text, length) {
  const shown = [...visible(text)];
  if (shown.length <= length) return shown.join("");
  return `${shown.slice(0, length - 9).join("")}…${shown.slice(-8).join("")}`;
}

/** The same for whoever does not see drawings, and for copying. */
export function list({nodes, lines}) {
  const text = (id) => nodes.find((node) => node.id === id);
  const link = (node) => h("a", {href: `#/person/${encodeURIComponent(node.text)}`}, value(node.text));
  return h("details", h("summary", "As a list"),
    h("ul.relations", lines.map(({from, to, word}) =>
      h("li", `${text(from).kind} `, link(text(from)), ` ${word} `, to.startsWith("identity") ? "" : `${text(to).kind} `, link(text(to))))));
}
