// SPDX-License-Identifier: Apache-2.0

import TestKit
import WireJSON

/// Makes of a message's data another, somewhere inside: a member less, one more, in another order, of another kind.
struct RandomChange: RandomSource {
    var random: SplitMix64

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    private static let values: [JSONValue] = [
        .null, true, false, "", "a", "0", "7", "-9223372036854775808", "+1", "2026-11-21T10:24:04.123Z", "2026-11-21",
        "phone",
        "none", [], [""], [.null], [:], ["kind": "phone", "platform": "ios"], ["a": .null], 0, 1, -1, 1.5,
        .number(JSONNumber(UInt64.max)), .number(JSONNumber(Int64.min)),
    ]

    mutating func changed(_ value: JSONValue) -> JSONValue {
        switch value {
        case .object(let object) where !object.members.isEmpty:
            var members = object.members.map { ($0.name, $0.value) }
            let place = Int.random(in: members.indices, using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0: members.remove(at: place)
            case 1: members.append(("more", pick(Self.values)))
            case 2: members.shuffle(using: &random)
            case 3: members[place].1 = pick(Self.values)
            case 4: members[place].0 = members[place].0.uppercased()
            default: members[place].1 = changed(members[place].1)
            }
            return .object(JSONObject(members))
        case .array(let elements) where !elements.isEmpty:
            var elements = elements
            let place = Int.random(in: elements.indices, using: &random)
            elements[place] = changed(elements[place])
            return .array(elements)
        default: return pick(Self.values)
        }
    }
}
