// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import TestKit
import WireJSON

/// Who sends commands and reads the answers. It sends again what is not answered, as clients do.
final class Client {
    /// A record that was sent.
    struct Sent {
        var id: String
        var kind: PlannedCommand.Kind
        var draft: Draft?
        var record: Record
    }

    /// An answer that stands on the topic.
    struct Answer {
        var place: Int
        var isFinal: Bool
        var isDryRun: Bool
        var reason: String?
        var result: [String: Any]?
    }

    private let world: World
    private let service: SimulatedService
    private let topics = Topics()
    private(set) var sent: [Int: Sent] = [:]
    private(set) var answers: [String: [Answer]] = [:]
    /// Where in ``SimulatedLog/written`` the dead letters with this value stand.
    private var letters: [[UInt8]: [Int]] = [:]
    private var facts = Facts()

    init(_ world: World, _ service: SimulatedService) {
        (self.world, self.service) = (world, service)
        world.log.listeners.append { [weak self] in self?.read($0) }
    }

    // MARK: Sending

    func send(_ planned: PlannedCommand) {
        var workload = Workload(service, seed: planned.seed)
        let id = "c\(planned.number)"
        switch planned.kind {
        case .fresh, .dryRun: put(planned, id, workload.draft(facts), planned.kind)
        case .again(let number):
            if let first = sent[number] { world.log.write(first.record) }
        case .reused(let number):
            guard let first = sent[number], first.kind == .fresh else { return }
            let draft = workload.draft(facts)
            // Of the same sender, or it is another command.
            guard let other = first.draft, draft.isInternal == other.isInternal,
                draft.type != other.type || draft.data != other.data
            else { return }
            put(planned, first.id, draft, planned.kind)
        case .poison:
            let record = Record(
                topic: topics.commands(service.rawValue), key: Array("demo/\(id)".utf8),
                value: Array("{\"poison\": \(planned.number)".utf8))
            sent[planned.number] = Sent(id: id, kind: .poison, record: record)
            world.log.write(record)
        case .forged: put(planned, id, workload.draft(facts), .forged)
        }
    }

    /// Asks something that was not planned.
    func ask(_ draft: Draft, number: Int) {
        put(PlannedCommand(number: number, time: 0, kind: .fresh, seed: 0), "c\(number)", draft, .fresh)
    }

    private func put(_ planned: PlannedCommand, _ id: String, _ draft: Draft, _ kind: PlannedCommand.Kind) {
        var attributes = EventAttributes(
            id: id, source: draft.isInternal ? "identitybus/simulation" : "test", type: draft.type, appID: Kit.app)
        if draft.isInternal { attributes.replyTo = topics.replies }
        attributes.subject = draft.subject
        if kind == .dryRun { attributes.dryRun = "true" }
        let seal =
            kind == .forged ? world.kit.impostor : draft.isInternal ? world.kit.insider : world.kit.outsider
        do {
            let record = try seal.record(
                to: topics.commands(service.rawValue), key: Array("\(Kit.app)/\(draft.subject)".utf8), attributes,
                draft.data)
            sent[planned.number] = Sent(id: id, kind: kind, draft: draft, record: record)
            world.log.write(record)
        } catch {
            world.violations.append("a command cannot be written: \(error)")
        }
    }

    // MARK: Answers

    private func read(_ written: SimulatedLog.Written) {
        let place = world.log.written.count - 1
        if written.place.topic == topics.deadLetters(service.rawValue) {
            letters[written.record.value ?? [], default: []].append(place)
        }
        guard written.place.topic == topics.replies, let reply = Envelope(written.record),
            let id = reply.data["commandId"] as? String
        else { return }
        let result = reply.data["result"] as? [String: Any]
        answers[id, default: []].append(
            Answer(
                place: place, isFinal: reply.data["status"] as? String != "pending",
                isDryRun: reply.data["dryRun"] as? Bool ?? false, reason: reply.data["reason"] as? String,
                result: result))
        if let code = result?["authenticationCode"] as? String { facts.codes.append(code) }
        if let user = result?["userId"] as? String { facts.users.append(user) }
        if let mpid = result?["mpid"] as? String { facts.mpids.append(mpid) }
    }

    /// The records that were not answered by what was written from this place on.
    func unanswered(since place: Int = 0) -> [Int] {
        sent.keys.sorted().filter { number in
            guard let one = sent[number] else { return false }
            return !isAnswered(one, since: place)
        }
    }

    private func isAnswered(_ one: Sent, since place: Int) -> Bool {
        let all = (answers[one.id] ?? []).filter { $0.place >= place }
        let answers = all.filter(\.isFinal)
        return switch one.kind {
        case .fresh, .again: answers.contains { $0.reason != "ID_REUSED" && !$0.isDryRun }
        // Which of the two counts as the other one depends on which was read first.
        case .reused: answers.contains { $0.reason == "ID_REUSED" }
        // What others were asked about, and did not tell in time, is pending, and that is all.
        case .dryRun: all.contains(where: \.isDryRun)
        case .poison, .forged: (letters[one.record.value ?? []] ?? []).contains { $0 >= place }
        }
    }

    /// Sends records again. Both of an id that was reused: either may have been lost with the log.
    func sendAgain(_ numbers: [Int]) {
        let ids = Set(numbers.compactMap { sent[$0]?.id })
        for number in sent.keys.sorted() {
            if let one = sent[number], ids.contains(one.id) { world.log.write(one.record) }
        }
    }
}

/// A message as Foundation reads it, which shares nothing with how the product reads and writes it.
struct Envelope {
    var attributes: [String: Any]
    var data: [String: Any]

    init?(_ record: Record) {
        guard let value = record.value,
            let object = try? JSONSerialization.jsonObject(with: Data(value)) as? [String: Any]
        else { return nil }
        attributes = object
        data = object["data"] as? [String: Any] ?? [:]
    }

    subscript(_ name: String) -> String? { attributes[name] as? String }
}
