// SPDX-License-Identifier: Apache-2.0

// Who belongs to whom, as a drawing and as a list. A phone, on which the drawing would be too small to read, has the list.

import { h, list, person, svg, visible } from "./dom.js";

/** What the services hold now: `{nodes: [{id, kind, text, note, tone}], lines: [{from, to, word, isOver}]}`. */
export function relations(rows) {
  const nodes = new Map();
  const lines = new Map();
  const node = (kind, text, more) => {
    const id = `${kind} ${text}`;
    nodes.set(id, {id, kind, text, ...nodes.get(id), ...more});
    return id;
  };
  const line = (from, to, word, isOver = false) => lines.set(`${from} ${to}`, {from, to, word, isOver});
  const tone = (row) => row.isErased || row.isRestricted ? "bad" : "";
  // Who is there first is met by what names them: in this order.
  const reads = {
    "link user": (row) => {
      const user = node("user", row.userId, {note: row.isErased ? "erased" : row.externalId ?? "no external id", tone: tone(row)});
      if (row.externalId) line(user, node("identity", row.externalId, {note: "external id"}), "is called");
    },
    "link install": (row) => {
      const install = node("install", row.installId, {note: `${row.device}, ${row.activity ?? "another user's"}`,
        tone: row.activity === "active" ? "good" : [undefined, "enabled"].includes(row.status) ? "" : "bad"});
      if (row.userId) line(node("user", row.userId), install, "is on");
    },
    "sync profile": (row) => {
      const profile = node("profile", row.mpid, {note: row.isErased ? "erased" : row.isRestricted && "restricted", tone: tone(row)});
      if (row.userId) line(node("user", row.userId), profile, "is the user of");
      for (const {type, value} of row.identities ?? []) {
        // The external id of the one service and the customer id of the other are one name.
        const isKnown = type === "customerid" && nodes.has(`identity ${value}`);
        line(profile, node("identity", value, {note: isKnown ? "external id, customerid" : type}), "is called");
      }
      for (const other of row.apartFrom ?? []) line(profile, node("profile", other), "is kept apart from", true);
    },
    "sync device": (row) => {
      const device = node("device", row.deviceId);
      for (const mpid of row.users ?? []) {
        if (mpid !== row.mpid && nodes.has(`profile ${mpid}`)) line(`profile ${mpid}`, device, "was on", true);
      }
      if (row.mpid) line(node("profile", row.mpid), device, "is on");
    },
    "verification session": (row) => node("device", row.deviceId, {note: row.state,
      tone: {verified: "good", unverified: "bad"}[row.state]}),
  };
  for (const [kind, read] of Object.entries(reads)) {
    for (const {service, row} of rows) if (`${service} ${row.kind}` === kind) read(row);
  }
  return {nodes: [...nodes.values()], lines: [...lines.values()]};
}

const columns = {identity: 0, user: 1, profile: 1, install: 2, device: 2};
const [width, height, between, gap] = [236, 46, 322, 14];

export function graph({nodes, lines}) {
  const rows = [0, 1, 2].map((column) => nodes.filter((node) => columns[node.kind] === column));
  const tallness = (nodes) => nodes.length * (height + gap) - gap;
  const [wide, tall] = [between * 2 + width + 2, Math.max(...rows.map(tallness)) + 2];
  const places = new Map(rows.flatMap((nodes, column) => nodes.map((node, index) =>
    [node.id, {x: 1 + column * between, y: (tall - tallness(nodes)) / 2 + index * (height + gap)}])));
  return svg("svg.graph", {viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall, role: "img", 
    "aria-label": "Who belongs to whom. The list below says the same."},
    lines.map(({from, to, isOver}) =>
      svg(isOver ? "path.over" : "path", {d: path(places.get(from), places.get(to))})),
    nodes.map(({id, kind, text, note, tone}) => svg(`g.node.${kind}${tone ? `.${tone}` : ""}`,
      {transform: `translate(${places.get(id).x} ${places.get(id).y})`},
      svg("title", `${kind} ${text}`),
      svg("rect", {width, height, rx: 8}),
      svg("text.name", {x: 12, y: 20}, short(text, 27)),
      svg("text.note", {x: 12, y: 36}, short(note ? `${kind}, ${note}` : kind, 34)))));
}

function path(from, to) {
  const [left, right] = from.x <= to.x ? [from, to] : [to, from];
  const [y1, y2] = [left.y + height / 2, right.y + height / 2];
  const x1 = left.x + width;
  const [x2, bend] = left.x === right.x ? [x1, x1 + 44] : [right.x, (x1 + right.x) / 2];
  return `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`;
}

/** Ids differ at their ends. */
function short(text, length) {
  const shown = [...visible(text)];
  return shown.length <= length ? shown.join("") : `${shown.slice(0, length - 9).join("")}…${shown.slice(-8).join("")}`;
}

export function relationList({nodes, lines}) {
  const all = new Map(nodes.map((node) => [node.id, node]));
  const named = ({kind, text}) => [kind !== "identity" && `${kind} `, person(text)];
  return h("details", {open: innerWidth < 640}, h("summary", "As a list"),
    list(lines.map(({from, to, word}) => [named(all.get(from)), ` ${word} `, named(all.get(to))])));
}
