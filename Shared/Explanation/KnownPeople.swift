// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// Who stands among the rows, and what each is called there.
package struct KnownPeople: Sendable {
    private var names: [String: String] = [:]
    private var mpids: Set<String> = []

    package init(_ rows: [IdentityWalk.Row]) {
        for row in rows where row.value["kind"] == "profile" {
            guard let mpid = row.value["mpid"]?.stringValue else { continue }
            mpids.insert(mpid)
            names[mpid] = Self.name(row.value["identities"]?.arrayValue ?? [])
        }
    }

    /// A profile in a sentence, with its name where it has one above, and as another one where it does not stand there.
    func profile(_ mpid: String) -> String {
        guard mpids.contains(mpid) else { return "another profile, \(mpid)," }
        return "profile \(mpid)" + (names[mpid].map { " (\($0))" } ?? "")
    }

    /// What people call somebody by.
    private static func name(_ identities: [JSONValue]) -> String? {
        [IdentityType.customerID, .email].lazy.compactMap { type in
            identities.first { $0["type"]?.stringValue == type.rawValue }
        }.first.map(EventWords.words)
    }
}
