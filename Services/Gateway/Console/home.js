// SPDX-License-Identifier: Apache-2.0

// The first page: what can be looked for. In a demo it leads through three cases.

import { holder, isDemo, may } from "./api.js";
import { h, value } from "./dom.js";

const cases = [
  ["ivan@mail.example", "I see somebody else's orders.", "Ivan's e-mail is in Grace's profile. Take them apart, and look \
at the preview before you carry it out."],
  ["ada", "My phone was stolen. I have my tablet here.", "The tablet waits behind the phone. Make the tablet active."],
  ["lindas-phone", "The shop does not know me in the app.", "Her external id was mistyped when she was linked. Change it: she \
stays the same user."],
];

export function homePage() {
  return [
    h("div.title", h("h1", {tabindex: "-1"}, "Who is it about?")),
    h("p.lead", "Look for any id: an e-mail, an external id, a user, an install, a device, an MPID, or the id of a command."),
    h("ib-search", {"data-large": true}),
    !may("support") && h("p.notice.bad", "This key may not read about people: it lacks the scope support."),
    isDemo && h("section", h("h2", "Three complaints to begin with"),
      h("ol.cases", cases.map(([id, words, hint]) => h("li.card",
        h("blockquote", `“${words}”`), h("p", hint), h("a.button", {href: `#/person/${encodeURIComponent(id)}`}, "Look for ", value(id)))))),
    isDemo && h("p", "Nine more are told in ", h("code", "docs/console.md"), "."),
    h("section.card", h("h2", "This key"), h("dl",
      h("dt", "app"), h("dd", value(holder.app)),
      h("dt", "key"), h("dd", value(holder.key)),
      h("dt", "may"), h("dd", holder.scopes.length ? holder.scopes.join(", ") : "nothing"),
      h("dt", "noted"), h("dd", "What you read or do here is in the log."))),
  ];
}
