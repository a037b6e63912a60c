// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts

/// A moment as people say it: `10m` ago, `now`, `18:30` of today, a day, or RFC 3339. UTC, as everything here.
struct TimePoint: ExpressibleByArgument {
    let time: Timestamp

    init?(argument text: String) { self.init(text, now: .now) }

    init?(_ text: String, now: Timestamp) {
        if text == "now" {
            time = now
        } else if let age = Self.milliseconds(text) {
            time = Timestamp(milliseconds: now.milliseconds - age)
        } else if let time = Timestamp(rfc3339OrDay: text) ?? Timestamp(rfc3339: "\(text)Z") {
            self.time = time
        } else {
            let clock = text.hasSuffix("Z") ? String(text.dropLast()) : text
            let full = clock.split(separator: ":").count == 2 ? "\(clock):00" : clock
            guard let time = Timestamp(rfc3339: "\(now.rfc3339.prefix(10))T\(full)Z") else { return nil }
            self.time = time
        }
    }

    private static func milliseconds(_ text: String) -> Int64? {
        let units: [Character: Int64] = ["s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000]
        guard let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()), count >= 0,
            count <= 1_000_000
        else { return nil }
        return count * unit
    }
}
