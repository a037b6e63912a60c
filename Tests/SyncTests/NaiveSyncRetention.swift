// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Runtime
@testable import Sync

/// Who goes because nobody came back (S202, S203), told a second time.
extension NaiveSyncModel {
    static let retention = RetentionSettings(anonymous: 400_000, orphan: 200_000, device: 300_000)

    func heard(of person: Person) -> Int64 { person.named.values.reduce(person.last, max) }
    func heard(of device: Device) -> Int64 { device.users.map(\.last).reduce(device.moved, max) }

    /// By the clock of the service and that of the broker; the service's alone may be two weeks wrong.
    private static func isOver(_ days: Int64, since: Int64, _ context: DecisionContext) -> Bool {
        var clocks = [context.now.milliseconds]
        if let logged = context.logged, logged.isBrokers {
            clocks.append(logged.milliseconds)
        } else {
            clocks[0] -= 14 * 24 * 60 * 60 * 1000
        }
        return clocks.allSatisfy { $0 - since >= days }
    }

    mutating func expire(_ command: ExpireProfile, _ context: DecisionContext) {
        guard let person = person(command.mpid), heard(of: person) == command.lastSeen.milliseconds else { return }
        let isSomebody = person.isErased || isKnown(person) || person.user != nil || person.isFrozen
        let isThere = devices.values.contains { $0.current == person.mpid || $0.anonymous == person.mpid }
        let isAwaited = aliases.values.contains { $0.contains(person.mpid) }
        let isFenced = fences.contains { $0.mpid == person.mpid || $0.other == person.mpid }
        guard !isSomebody, !isThere, !isAwaited, !isFenced else { return }
        let days = person.isOrphan ? Self.retention.orphan : Self.retention.anonymous
        guard Self.isOver(days ?? .max / 2, since: heard(of: person), context) else { return }
        for pair in pairs where pair.of[0] == person.mpid { origins[pair.of[1]]?.removeAll { $0 == person.mpid } }
        pairs.removeAll { $0.of.contains(person.mpid) }
        origins[person.mpid] = nil
        people.removeAll { $0.mpid == person.mpid }
        deeds.repair = ProfileExpired(mpid: person.mpid, lastSeen: command.lastSeen)
    }

    mutating func expire(_ command: ExpireDevice, _ context: DecisionContext) {
        guard var device = devices[command.deviceId], heard(of: device) == command.lastSeen.milliseconds,
            Self.isOver(Self.retention.device ?? .max / 2, since: heard(of: device), context)
        else { return }
        for user in [device.current, device.anonymous].compactMap(person) where !user.isErased {
            if isKnown(user) || user.isFrozen || user.user != nil { return }
        }
        if device.current != nil {
            device.turn(context.now.milliseconds)
            deeds.turns[command.deviceId] = device.moved
        }
        mostMoved = max(mostMoved, device.moved)
        devices[command.deviceId] = nil
        deeds.repair = DeviceExpired(deviceId: command.deviceId, lastSeen: command.lastSeen)
    }
}
