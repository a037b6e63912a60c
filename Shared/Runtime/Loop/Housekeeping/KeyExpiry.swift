// SPDX-License-Identifier: Apache-2.0

package import Apps
package import Contracts
package import Logging

/// Which of the apps' keys are over, each told once.
package struct KeyExpiry {
    private var told: Set<String> = []

    package init() {}

    /// Says which keys have expired since this was asked last.
    package mutating func tell(_ apps: AppDirectory, now: Timestamp, _ logger: Logger) {
        let over = newlyOver(in: apps, now: now)
        if over.isEmpty { return }
        logger.notice(
            "keys have expired: what they sign is refused",
            metadata: ["event": "apps.key-expired", "keys": "\(over.joined(separator: " "))"])
    }

    /// - Returns: the keys, as `app/key`, that have expired since they were looked at last.
    mutating func newlyOver(in apps: AppDirectory, now: Timestamp) -> [String] {
        let over = Set(apps.expiries.filter { $0.expires <= now }.map { "\($0.app)/\($0.key)" })
        defer { told = over }
        return over.subtracting(told).sorted()
    }
}

extension AppDirectory {
    /// The keys that end, and when.
    var expiries: [(app: AppID, key: KeyID, expires: Timestamp)] {
        ids.flatMap { app in
            (self[app]?.keys ?? [:]).compactMap { key, settings in settings.expires.map { (app, key, $0) } }
        }
    }
}
