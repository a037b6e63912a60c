// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Runtime
@testable import Sync

/// Whom an erasure erased, as the naive model remembers them: their own words, not digests of them.
extension NaiveSyncModel {
    struct Memory: Hashable {
        var names: Set<Identity> = []
        var devices: Set<DeviceID> = []
        var end: Int64
    }

    /// Of somebody who was known: what made them so. Of nobody in particular: where they were.
    func memory(of person: Person, _ devices: [DeviceID: Device], _ end: Int64) -> Memory? {
        var memory = Memory(end: end)
        if isKnown(person) {
            memory.names = Set(
                person.ids.filter { id in
                    guard isLogin(id), let since = person.named[id], since <= end else { return false }
                    return settings.uniqueIdentities.contains(id.type) || holders(id).isEmpty
                })
        } else if person.first <= end {
            memory.devices = Set(devices.filter { $0.value.anonymous == person.mpid }.keys)
        }
        return memory.names.isEmpty && memory.devices.isEmpty ? nil : memory
    }

    /// Whether this is whoever is remembered: called so before anything else, since then.
    private func isAgain(_ person: Person, _ memory: Memory) -> Bool {
        let rest = IdentityType.allCases.sorted().filter { !settings.priority.contains($0) }
        for type in settings.priority + rest {
            let names = person.ids.filter { isLogin($0) && $0.type == type }
            if names.isEmpty { continue }
            return names.contains { name in
                memory.names.contains { same($0, name) } && person.named[name].map { $0 <= memory.end } == true
            }
        }
        // Somebody without a name.
        let users = memory.devices.compactMap { devices[$0]?.anonymous }
        let elsewhere = devices.filter { !memory.devices.contains($0.key) }.values
        return users.contains(person.mpid) && person.first <= memory.end
            && !elsewhere.contains { [$0.current, $0.anonymous].contains(person.mpid) }
    }

    /// - Returns: whether others have to do their part.
    mutating func keepErased(_ command: KeepErased, newMPID: MPID, _ context: DecisionContext) -> Bool {
        if isUnderWay(context.command) { return true }
        gone.formUnion(command.userIds ?? [])
        let found = people.filter { person in
            !person.isErased && memories[command, default: []].contains { isAgain(person, $0) }
        }
        guard let end = memories[command]?.first?.end, !found.isEmpty else { return false }
        let users = found.filter { $0.linked ?? .max <= end }.compactMap(\.user)
        askOthers(found, .none, users)
        erase(found, named: [], users: [], meant: users, isWhole: true, end: end, newMPID: newMPID, context)
        deeds.told = []
        return true
    }
}
