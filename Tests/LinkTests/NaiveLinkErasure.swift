// SPDX-License-Identifier: Apache-2.0

import Contracts

@testable import Link

/// Erasure in the naive model.
extension NaiveLinkModel {
    mutating func erase(_ user: UserID, app: AppID, _ id: CommandID, _ forwardID: (Int) -> CommandID) -> Told {
        guard let person = persons[user], person.app == app else { return (.rejected(.userNotFound), []) }
        let tasks = Set(["user", "sync"].map { Task(user: user, service: $0) })
        if person.isErased, tasks.isSubset(of: finished) { return (certificate([user], isWhole: true), []) }
        let waits = waits(id, for: user)
        if !waits, count(user) >= 16 { return (.rejected(.throttled), []) }
        let events = person.isErased ? [] : remove(user, moment)
        whole.insert(user)
        begin(Task(user: user, service: "user"), forwardID(0))
        begin(Task(user: user, service: "sync"), forwardID(1))
        if !waits { waiting.append((id, [user], tasks.subtracting(finished), true)) }
        return (.pending, events)
    }

    mutating func forget(
        _ command: ForgetPerson, app: AppID, _ id: CommandID, _ forwardID: (Int) -> CommandID
    ) -> Told {
        var users: [UserID] = []
        if let user = command.userId, let person = persons[user], person.app == app {
            // Named by both, and called otherwise by now though nobody renamed it: it is not that profile's.
            let names = [person.externalID] + person.past.map(\.externalId)
            if person.isErased || command.externalId == nil || names.contains(command.externalId) { users.append(user) }
        }
        // When it was that the sync service was told to.
        let then = command.erasedAt?.milliseconds ?? moment
        if let user = command.externalId.flatMap({ owner(of: $0, app) }), !users.contains(user),
            persons[user]?.named ?? 0 <= then
        {
            users.append(user)
        }
        let before = self
        var events: [AnyHashable] = []
        var tasks: Set<Task> = []
        var isNew = false
        for (number, user) in users.enumerated() {
            let task = Task(user: user, service: "user")
            if finished.contains(task) { continue }
            let waits = waits(id, for: user)
            if !waits, count(user) >= 16 {
                self = before
                return (.rejected(.throttled), [])
            }
            if persons[user]?.isErased == false { events += remove(user, then) }
            begin(task, forwardID(number))
            tasks.insert(task)
            isNew = isNew || !waits
        }
        if tasks.isEmpty { return (certificate(users, isWhole: false), []) }
        if isNew { waiting.append((id, Set(users), tasks, false)) }
        return (.pending, events)
    }

    func erasure(_ user: UserID, app: AppID) -> Answer {
        guard let person = persons[user], person.app == app, person.isErased else { return .rejected(.userNotFound) }
        // Somebody answered for the sync service, or it was asked.
        let hasSync = parts[user]?.contains { $0.sync != nil } == true
        return certificate([user], isWhole: whole.contains(user) || hasSync)
    }

    /// What of the persons is gone by now.
    private func certificate(_ users: [UserID], isWhole: Bool) -> Answer {
        var gone = Gone(
            users, persons: users.count, installs: users.map { removed[$0] ?? 0 }.reduce(0, +), isWhole: isWhole)
        for part in users.flatMap({ parts[$0] ?? [] }) {
            gone.done.user?.installs += part.user?.installs ?? 0
            gone.done.user?.codes += part.user?.codes ?? 0
            guard isWhole else { continue }
            gone.done.sync?.profiles += part.sync?.profiles ?? 0
            gone.done.verification?.sessions += part.verification?.sessions ?? 0
        }
        return .certificate(gone)
    }

    /// Whether the command waits for the user's erasure already.
    private func waits(_ id: CommandID, for user: UserID) -> Bool {
        waiting.contains { $0.id == id && $0.users.contains(user) }
    }

    private func count(_ user: UserID) -> Int { waiting.filter { $0.tasks.contains { $0.user == user } }.count }

    private mutating func remove(_ user: UserID, _ moment: Int64) -> [AnyHashable] {
        erasedAt[user] = moment
        externalIDs[user] = persons[user]?.externalID
        pasts[user] = persons[user]?.past
        holds = holds.mapValues { $0.filter { $0.value.user != user } }
        persons[user] = PersonRow(app: persons[user]?.app ?? "", isErased: true)
        let mine = installs.filter { $0.value.user == user }.keys.sorted()
        erasedInstalls[user] = mine
        removed[user] = mine.count
        for id in mine {
            guard let row = installs[id] else { continue }
            installs[id] = InstallRow(
                app: row.app, device: Device(kind: .other, platform: "erased"), status: row.status,
                version: row.version + 1, erasedAt: max(moment, row.erasedAt ?? moment))
        }
        return [UserErased(userId: user)]
    }

    private mutating func begin(_ task: Task, _ forward: CommandID) {
        if finished.contains(task) || (begun[task] ?? nil) != nil { return }
        begun[task] = .some(forward)
        let externalID = externalIDs[task.user]
        let moment = Timestamp(milliseconds: erasedAt[task.user] ?? 0)
        let past = pasts[task.user] ?? []
        sent[forward] =
            task.service == "sync"
            ? AnyHashable(
                ForgetProfiles(
                    userId: task.user, externalId: externalID, former: past.isEmpty ? nil : past, erasedAt: moment))
            : AnyHashable(
                ForgetUser(
                    userId: task.user, externalId: externalID, installIds: erasedInstalls[task.user] ?? [],
                    erasedAt: moment))
    }

    mutating func take(_ answer: ForgetAnswer, app: AppID) {
        guard let task = begun.first(where: { $0.value == answer.forward })?.key, persons[task.user]?.app == app
        else { return }
        switch answer.outcome {
        case .pending: break
        case .refused:
            begun[task] = .some(nil)
            for one in waiting where one.tasks.contains(task) {
                settled[CommandID(one.id.text)] = .rejected(.serverError)
            }
            waiting.removeAll { $0.tasks.contains(task) }
        case .done(let certificate):
            begun[task] = nil
            finished.insert(task)
            parts[task.user, default: []].append(certificate.done)
            for place in waiting.indices { waiting[place].tasks.remove(task) }
            for one in waiting where one.tasks.isEmpty {
                settled[CommandID(one.id.text)] = self.certificate(Array(one.users), isWhole: one.isWhole)
            }
            waiting.removeAll { $0.tasks.isEmpty }
            // All is done: nothing is kept but ids and counts.
            if !unfinished.contains(task.user) {
                externalIDs[task.user] = nil
                pasts[task.user] = nil
                erasedInstalls[task.user] = []
            }
        }
    }
}
