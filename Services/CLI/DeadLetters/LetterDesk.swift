// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Messaging
import Runtime
import Supervision

/// The dead letters of a deployment and what was done about them, as they stand in Kafka. Its clients are not closed: the
/// process ends, and waits for none.
final class LetterDesk {
    let kafka: KafkaAccess
    let deployment: Deployment
    let admin: KafkaAdmin
    /// All topics that we may see, with their numbers of partitions.
    let existing: [String: Int]
    let log: HandlingLog
    let stop: () -> Bool

    /// - Parameter stop: asked now and then.
    init(_ deployment: Deployment, unless stop: @escaping () -> Bool) throws {
        self.deployment = deployment
        self.stop = stop
        kafka = try deployment.kafka()
        let reached = try kafka.reach(unless: stop)
        admin = reached.admin
        existing = reached.topics
        let topics = deployment.topics
        let services = serviceNames.filter { reached.topics[topics.deadLetterActions($0)] != nil }
        log = try HandlingLog(kafka, admin, topics, services: services, run: UUID().uuidString.lowercased())
    }

    /// The letters that are there now, as they came, and what was done about them.
    func letters(_ choice: LetterChoice) throws -> [HandledLetter] {
        let topics = deployment.topics
        for name in choice.services.union(choice.ids.map(\.service)).subtracting(serviceNames).sorted() {
            let guess = nearest(to: name, in: serviceNames).map { " Did you mean \($0)?" } ?? ""
            throw Problem(
                .usage, "there is no service \(name).\(guess)", "There are: \(serviceNames.joined(separator: ", ")).")
        }
        let services = serviceNames.filter { name in
            (choice.services.isEmpty || choice.services.contains(name))
                && (choice.ids.isEmpty || choice.ids.contains { $0.service == name })
        }
        let present = services.filter { existing[topics.deadLetters($0)] != nil }
        guard !present.isEmpty else { throw noTopics(services) }
        try checkSight(of: services, present)
        var letters: [Letter] = []
        var reasons: Set<String> = []
        var apps: Set<String> = []
        let names = Dictionary(uniqueKeysWithValues: present.map { (topics.deadLetters($0), $0) })
        let partitions = TopicScan.partitions(existing.filter { names[$0.key] != nil })
        let scan = try TopicScan(
            kafka, admin, partitions, from: choice.since.map { .time($0) } ?? .beginning)
        try scan.catchUp(unless: stop) { record in
            guard let service = names[record.topicPartition.topic], let letter = Letter(record, of: service) else {
                return
            }
            reasons.insert(letter.reason)
            if let app = letter.app { apps.insert(app) }
            if choice.contains(letter) { letters.append(letter) }
        }
        if let reason = choice.reason { try check(reason, there: reasons) }
        if let app = choice.app { try check(app: app, there: apps) }
        try log.catchUp(unless: stop)
        return log.handled(ReplayPlan.inOrder(letters))
    }

    /// What services give (docs/guarantees.md).
    private static let reasons =
        EnvelopeError.Reason.allCases.map(\.rawValue) + AuthenticationFailure.Reason.allCases.map(\.rawValue)
        + [ReasonCode.internalError.rawValue, "TOO_OLD_TO_TELL", "UNDELIVERABLE"]

    /// - Throws: `Problem` when no letter has such a reason, and none ever will.
    private func check(_ reason: String, there: Set<String>) throws {
        let known = there.union(Self.reasons)
        guard !known.contains(reason.uppercased()), !known.contains(reason) else { return }
        let guess = nearest(to: reason.uppercased(), in: known.sorted()).map { " Did you mean \($0)?" } ?? ""
        let have = there.isEmpty ? "There is no dead letter." : "There are: \(there.sorted().joined(separator: ", "))."
        throw Problem(.usage, "no dead letter has the reason \(reason).\(guess)", have)
    }

    /// - Throws: `Problem` when no letter is of such an app, and the apps file has none; that need not be here.
    private func check(app: String, there: Set<String>) throws {
        guard !there.contains(app), let apps = try? deployment.appDirectory() else { return }
        let known = there.union(apps.ids.map(\.text)).sorted()
        guard !known.contains(app) else { return }
        let guess = nearest(to: app, in: known).map { " Did you mean \($0)?" } ?? ""
        throw Problem(
            .usage, "\(deployment.appsPath) has no app \(app), and no letter that was looked at is of one.\(guess)",
            "There are: \(known.joined(separator: ", ")).")
    }

    /// A record that somebody has said to stand there; `nil` when it is not there any more.
    func record(at partition: TopicPartition, _ offset: Int64) throws -> KafkaRecord? {
        guard existing[partition.topic] != nil else { return nil }
        let scan = try TopicScan(kafka, admin, partition, at: offset)
        let deadline = ContinuousClock.now + .seconds(5)
        while .now < deadline, !stop() {
            guard let first = try scan.poll(.milliseconds(100)).first else { continue }
            return first.offset == offset ? first : nil
        }
        return nil
    }

    /// One letter.
    func letter(_ id: LetterID) throws -> HandledLetter {
        guard let found = try letters(LetterChoice(ids: [id])).first else {
            throw Problem(
                .refused, "there is no dead letter \(id).", "All letters: identitybus dlq list --each",
                "A service's letters go when the retention of its dead letter topic is over.")
        }
        return found
    }

    /// Tells of letters that this Kafka user may not see.
    /// - Throws: `Problem` where it may not see what was done about those that it sees: they would all look open.
    private func checkSight(of services: [String], _ present: [String]) throws {
        let topics = deployment.topics
        let needed = Set(present.map { topics.deadLetterActions($0) })
        let unseen = (services.map { topics.deadLetters($0) } + needed.sorted()).filter { existing[$0] == nil }
        guard !unseen.isEmpty else { return }
        try admin.watch(topics: unseen)
        let states = try admin.topicStates(timeout: .seconds(5))
        let hidden = unseen.filter { states[$0]?.error?.code == KafkaError.Code.topicAuthorizationFailed }
        let actions = hidden.filter { needed.contains($0) }
        guard actions.isEmpty else { throw kafka.noRight(to: "read", "Read", actions) }
        if !hidden.isEmpty {
            complain("this Kafka user may not see the letters of \(hidden.joined(separator: ", "))")
        }
    }

    private func noTopics(_ services: [String]) -> Problem {
        Problem(
            .refused,
            "Kafka at \(kafka.configuration.bootstrapServers) has no topic "
                + "\(services.map { deployment.topics.deadLetters($0) }.joined(separator: ", ")).",
            "Services make their topics when they start; TOPIC_PREFIX must be theirs.",
            "Kafka shows a topic only to users with a right to it (READ, or DESCRIBE).")
    }

    /// - Throws: `Problem` when what is done could not be written down.
    func checkActions(_ letters: [Letter]) throws {
        let missing = Set(letters.map(\.id.service)).map { deployment.topics.deadLetterActions($0) }
            .filter { existing[$0] == nil }.sorted()
        guard !missing.isEmpty else { return }
        throw Problem(
            .refused,
            "Kafka at \(kafka.configuration.bootstrapServers) shows no topic \(missing.joined(separator: ", ")).",
            "Nothing was done: what is done about a letter is written there, so that nobody does it twice.",
            "Services of this version make it when they start; this Kafka user needs READ and WRITE on it.")
    }

    func answers(_ letters: [Letter], _ post: LetterPost, from start: KafkaTail.Start) throws -> AnswerBoard {
        let wanted = post.replyTopics(letters)
        return try AnswerBoard(
            kafka, admin, existing.filter { wanted.contains($0.key) }, from: start,
            Publications(try deployment.keys(), topics: deployment.topics))
    }

}
