// SPDX-License-Identifier: Apache-2.0

import Contracts

@testable import Link

/// Erasure in the naive model.
extension NaiveLinkModel {
    mutating func erase(_ user: UserID, app: AppID, _ id: CommandID, _ forwardID: (Int) -> CommandID) -> Told {
        guard let person = persons[user], person.app == app else { return (.rejected(.userNotFound), []) }
        if person.isErased, !unfinished.contains(user) {
            return (.erasure(ErasureResult(userId: user, installsRemoved: 0)), [])
        }
        let waits = waits(id, for: user)
        if !waits, count(user) >= 16 { return (.rejected(.throttled), []) }
        let events = person.isErased ? [] : remove(user)
        let result = ErasureResult(
            userId: user, installsRemoved: person.isErased ? 0 : erasedInstalls[user]?.count ?? 0)
        begin(Task(user: user, service: "user"), forwardID(0))
        begin(Task(user: user, service: "sync"), forwardID(1))
        let tasks = Set([Task(user: user, service: "user"), Task(user: user, service: "sync")])
        if !waits { waiting.append((id, [user], tasks.subtracting(finished), .erasure(result))) }
        return (.pending, events)
    }

    mutating func forget(
        _ command: ForgetPerson, app: AppID, _ id: CommandID, _ forwardID: (Int) -> CommandID
    ) -> Told {
        var users: [UserID] = []
        if let user = command.userId, persons[user]?.app == app { users.append(user) }
        if let user = command.externalId.flatMap({ owner(of: $0, app) }), !users.contains(user) { users.append(user) }
        let before = self
        var events: [AnyHashable] = []
        var tasks: Set<Task> = []
        var isNew = false
        for (number, user) in users.enumerated() {
            let task = Task(user: user, service: "user")
            let isErased = persons[user]?.isErased == true
            if isErased, !unfinished.contains(user) || finished.contains(task) { continue }
            let waits = waits(id, for: user)
            if !waits, count(user) >= 16 {
                self = before
                return (.rejected(.throttled), [])
            }
            if !isErased { events += remove(user) }
            begin(task, forwardID(number))
            tasks.insert(task)
            isNew = isNew || !waits
        }
        if tasks.isEmpty { return (.forgotten(ForgottenPersonResult(userId: users.first)), []) }
        let first = users.first { tasks.contains(Task(user: $0, service: "user")) }
        if isNew { waiting.append((id, Set(users), tasks, .forgotten(ForgottenPersonResult(userId: first)))) }
        return (.pending, events)
    }

    /// Whether the command waits for the user's erasure already.
    private func waits(_ id: CommandID, for user: UserID) -> Bool {
        waiting.contains { $0.id == id && $0.users.contains(user) }
    }

    private func count(_ user: UserID) -> Int { waiting.filter { $0.tasks.contains { $0.user == user } }.count }

    private mutating func remove(_ user: UserID) -> [AnyHashable] {
        externalIDs[user] = persons[user]?.externalID
        persons[user] = PersonRow(app: persons[user]?.app ?? "", isErased: true)
        let mine = installs.filter { $0.value.user == user }.keys.sorted()
        erasedInstalls[user] = mine
        for id in mine {
            guard let row = installs[id] else { continue }
            installs[id] = InstallRow(
                app: row.app, device: Device(kind: .other, platform: "erased"), status: .deleted,
                version: row.version + 1)
        }
        return [UserErased(userId: user)]
    }

    private mutating func begin(_ task: Task, _ forward: CommandID) {
        if finished.contains(task) || (begun[task] ?? nil) != nil { return }
        begun[task] = .some(forward)
        let externalID = externalIDs[task.user]
        sent[forward] =
            task.service == "sync"
            ? AnyHashable(ForgetProfiles(userId: task.user, externalId: externalID))
            : AnyHashable(
                ForgetUser(userId: task.user, externalId: externalID, installIds: erasedInstalls[task.user] ?? []))
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
        case .done:
            begun[task] = nil
            finished.insert(task)
            for place in waiting.indices { waiting[place].tasks.remove(task) }
            for one in waiting where one.tasks.isEmpty { settled[CommandID(one.id.text)] = one.answer }
            waiting.removeAll { $0.tasks.isEmpty }
            // All is done: the person is as any that was erased long ago.
            if !unfinished.contains(task.user) { finished = finished.filter { $0.user != task.user } }
        }
    }
}
