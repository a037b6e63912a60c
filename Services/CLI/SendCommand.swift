// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import Foundation
import Messaging
import Observability
import Runtime
import Supervision
import WireJSON

struct SendCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Signs a command and sends it.",
        usage: """
            identitybus send <type> --app <app> --key-id <key-id> --data <data> [<options>]
            identitybus send --types
            """,
        discussion: """
            With --wait, prints the reply envelope as one JSON line. Exit status 0: succeeded, or sent; 3: rejected; \
            4: expired, or no reply in time. A time-out tells how to ask again without doing it twice.
            """)

    @Argument(
        help: "The command's type: link.request or, in full, identity.link.request.v1.",
        completion: .list(Self.known.map { RecordLine.short($0.name) }))
    var type: String?

    @Option(help: "The app the command is for.")
    var app: AppID?

    @Option(help: "The API key to sign with; `internal` signs as the services do.")
    var keyId: KeyID?

    @Option(help: "The command's data, a JSON object.")
    var data: String?

    @Option(help: "The command's id; the same id and source again is the same command. Default: a new UUID.")
    var id: CommandID?

    @Option(help: "The command's source.")
    var source = Topics.toolSource

    @Option(
        parsing: .unconditional, help: "Seconds to wait for the reply. Default: not at all; with --dry-run 40.",
        transform: parsedSeconds)
    var wait: Double?

    @Flag(help: "Only ask what would happen: nothing is changed, the id is not taken, the reply names the events.")
    var dryRun = false

    @Flag(help: "Send a type that this version does not know, or for an app that the apps file does not have.")
    var force = false

    @Flag(help: "List the types that there are, with the scope that a key needs, and send nothing.")
    var types = false

    @Flag(help: "Without --wait too, print one JSON line: where the command was written.")
    var json = false

    @OptionGroup var deployment: Deployment

    /// What a command consists of, all of it given.
    private struct Order {
        var type: String
        var service: String
        var app: AppID
        var keyID: KeyID
        var data: JSONValue
        var id: CommandID
    }

    func run() throws {
        if types { return listTypes() }
        let order = try order()
        let interruption = Interruption()
        // What is wrong with it is told before Kafka is asked where it goes.
        _ = try record(order, to: deployment.topics.commands(order.service))
        let kafka = try deployment.kafka()
        // Longer than services wait for each other before they tell what they know.
        let wait = wait ?? (dryRun ? 40 : nil)
        let patience = wait.map { min(KafkaAccess.patience, max(.seconds(3), .seconds($0))) } ?? KafkaAccess.patience
        let reached = try kafka.reach(within: patience) { interruption.isRequested }
        defer { reached.admin.close(timeout: .seconds(1)) }
        let record = try record(order, to: commandsTopic(order, among: Set(reached.topics.keys)))
        let replies = try deployment.replyTopic(app: order.app, keyID: order.keyID)
        let topics = try partitions(of: [record.topic] + (wait == nil ? [] : [replies]), reached, kafka)
        let tail = try wait.map { _ in
            try ReplyTail(
                kafka, topic: replies, partitions: topics[replies] ?? 0, keys: try deployment.keys(),
                topics: deployment.topics)
        }
        defer { tail?.close() }
        let place = try deliver(record, of: order, kafka)
        guard let tail, let wait else { return tellSent(order, place) }
        if Terminal.isErrorOutput {
            complain("sent      \(order.id)  \(place.text)  (waiting \(wait.formatted()) s at most)")
        }
        let question = ReplyTail.Question(
            commandID: order.id, digest: CommandDigest.text(type: order.type, data: order.data), isDryRun: dryRun)
        let answer: (line: String, status: ReplyStatus)?
        do {
            answer = try tail.reply(to: question, within: .seconds(wait)) { interruption.isRequested }
        } catch {
            var problem = error
            problem.advice.append("The command \(order.id) was written to \(place.text).")
            throw problem
        }
        guard let answer else {
            throw noAnswer(order, place, isInterrupted: interruption.isRequested, wait, pending: tail.pending)
        }
        say(answer.line.harmless)
        switch answer.status {
        case .succeeded, .pending: return
        case .rejected: throw ExitCode(ExitStatus.refused.rawValue)
        case .expired: throw ExitCode(ExitStatus.unanswered.rawValue)
        }
    }

    // MARK: Types

    private static let known = services.flatMap { $0.commandTypes }

    private func listTypes() {
        let width = Self.known.map { RecordLine.short($0.name).count }.max() ?? 0
        for type in Self.known.sorted(by: { $0.name < $1.name }) {
            if json {
                let line: JSONValue = ["type": .string(type.name), "scope": .string(type.scope.rawValue)]
                say(String(decoding: line.serialized(), as: UTF8.self))
            } else {
                let name = RecordLine.short(type.name)
                say(name + String(repeating: " ", count: width - name.count + 2) + type.scope.rawValue)
            }
        }
    }

    /// - Throws: also when something is missing, here and not by the parser: `--types` needs none of it.
    private func order() throws -> Order {
        guard let type, let app, let keyId, let data else {
            let given = [("<type>", type), ("--app", app?.text), ("--key-id", keyId?.text), ("--data", data)]
            let missing = given.filter { $0.1 == nil }.map(\.0)
            throw ValidationError("Missing: \(missing.joined(separator: ", "))")
        }
        let full = CommandType.fullName(type)
        guard let service = CommandType.service(of: full), force || Self.known.contains(where: { $0.name == full })
        else {
            let guess = nearest(to: RecordLine.short(full), in: Self.known.map { RecordLine.short($0.name) })
            throw Problem(
                .usage, "there is no command \(type).\(guess.map { " Did you mean \($0)?" } ?? "")",
                "Nothing was sent. All types: identitybus send --types")
        }
        if !force {
            do {
                try deployment.refuseUnknown(app)
            } catch var problem as Problem {
                problem.advice.append("Nothing was sent. --force sends it.")
                throw problem
            }
        }
        let value = try Self.object(data)
        return Order(
            type: full, service: service, app: app, keyID: keyId, data: value,
            id: id ?? CommandID(UUID().uuidString.lowercased()))
    }

    private static func object(_ data: String) throws -> JSONValue {
        let example = "A shell takes it whole in single quotes: --data '{\"installId\":\"phone-1\"}'"
        let text = Array(data.utf8)
        let value: JSONValue
        do {
            value = try JSONValue(parsing: text)
        } catch {
            let before = String(decoding: text.prefix(error.offset), as: UTF8.self).suffix(40)
            throw Problem(
                .usage, "--data: \(error)." + (before.isEmpty ? "" : " Before that stands: \(before)"),
                "Nothing was sent. \(example)")
        }
        guard value.objectValue != nil else {
            throw Problem(.usage, "--data is no JSON object.", "Nothing was sent. \(example)")
        }
        return value
    }

    // MARK: Sending

    private func commandsTopic(_ order: Order, among existing: Set<String>) -> String {
        (try? deployment.appDirectory())?[order.app]?.commandsTopic(
            of: order.service, deployment.topics, among: existing) ?? deployment.topics.commands(order.service)
    }

    private func record(_ order: Order, to topic: String) throws -> Record {
        let known = Self.known.first { $0.name == order.type }
        var attributes = EventAttributes(
            id: order.id.text, source: source, type: order.type, appID: order.app.text, time: Timestamp.now.rfc3339)
        attributes.traceParent = SpanContext.random(isSampled: true).traceParent
        if dryRun { attributes.dryRun = "true" }
        let seal = Seal(order.keyID.text, try deployment.secret(app: order.app, keyID: order.keyID))
        let record = try seal.command(
            to: topic, of: order.app, about: known?.partitionSubject(of: order.data) ?? order.id.text, attributes,
            order.data)
        do throws(EnvelopeError) {
            _ = try EnvelopeReader.read(value: record.value, headers: record.headers)
        } catch {
            // It would become a dead letter.
            throw Problem(.usage, "no service can read this command: \(error)", "Nothing was sent.")
        }
        return record
    }

    /// How many partitions the topics have: where the command goes, and where its reply comes from.
    /// - Throws: `Problem` when one is missing, or there is no right to see it: nothing would come of sending.
    private func partitions(
        of topics: [String], _ reached: KafkaAccess.Reached, _ kafka: KafkaAccess
    ) throws -> [String: Int] {
        if topics.allSatisfy({ reached.topics[$0] != nil }) { return reached.topics }
        let states: [String: TopicState]
        do {
            // Tells what is missing from what is hidden. The embedded broker makes what it is asked for.
            try reached.admin.watch(topics: topics)
            states = try reached.admin.topicStates(timeout: .seconds(10))
        } catch {
            throw kafka.problem(error)
        }
        for topic in topics {
            guard let error = states[topic]?.error else { continue }
            if error.code == KafkaError.Code.topicAuthorizationFailed {
                var problem =
                    topic == topics.first
                    ? kafka.noRight(to: "write", "Write", [topic]) : kafka.noRight(to: "read", "Read", [topic])
                problem.advice.append("Nothing was sent.")
                throw problem
            }
            throw Problem(
                .refused, "Kafka at \(kafka.configuration.bootstrapServers) has no topic \(topic).",
                "Nothing was sent. Services make their topics when they start; TOPIC_PREFIX must be theirs.")
        }
        return states.mapValues(\.partitions)
    }

    /// Where a record was written.
    private struct Place {
        var partition: TopicPartition
        var offset: Int64

        var text: String { "\(partition)@\(offset)" }
    }

    private func deliver(_ record: Record, of order: Order, _ kafka: KafkaAccess) throws -> Place {
        let producer = try KafkaProducer(configuration: kafka.configuration, logger: .quiet)
        let reports: [DeliveryReport]
        do {
            try producer.send(record, token: 1)
            reports = producer.flush(timeout: KafkaAccess.patience)
        } catch {
            // Who may not write to any topic gets no number as a producer: that may be known before anything is sent.
            _ = producer.poll(timeout: .zero)
            throw refusal(producer.fatalError ?? error, record.topic, kafka)
        }
        producer.close(timeout: .seconds(1))
        guard let report = reports.first else {
            throw Problem(
                .away, "Kafka at \(kafka.configuration.bootstrapServers) did not say that it has the command.",
                "It may have it. Send it again, which never does it twice: the same line with --id \(order.id)")
        }
        if let error = producer.fatalError ?? report.error { throw refusal(error, record.topic, kafka) }
        return Place(partition: report.topicPartition, offset: report.offset)
    }

    private func refusal(_ error: KafkaError, _ topic: String, _ kafka: KafkaAccess) -> Problem {
        let rights = [KafkaError.Code.topicAuthorizationFailed, KafkaError.Code.clusterAuthorizationFailed]
        guard rights.contains(error.code) else { return kafka.problem(error) }
        var problem = kafka.noRight(to: "write", "Write", [topic])
        problem.advice.append("Nothing was sent.")
        return problem
    }

    // MARK: What became of it

    private func tellSent(_ order: Order, _ place: Place) {
        complain("sent      \(order.id)  \(place.text)".harmless)
        complain(
            "          Nobody waited for the answer: --wait 5 does, and this shows it: identitybus watch --since 5m --until now --id \(order.id)"
                .harmless)
        guard json else { return }
        let line: JSONValue = [
            "id": .string(order.id.text), "topic": .string(place.partition.topic),
            "partition": .number(JSONNumber(place.partition.partition)), "offset": .number(JSONNumber(place.offset)),
        ]
        say(String(decoding: line.serialized(), as: UTF8.self).harmless)
    }

    private func noAnswer(
        _ order: Order, _ place: Place, isInterrupted: Bool, _ wait: Double, pending: String?
    ) -> Problem {
        let written = "it was written to \(place.text)"
        let soFar = pending.map { " So far: pending\($0.isEmpty ? "" : ", \($0)")" }
        return Problem(
            isInterrupted ? .interrupted : .unanswered,
            (isInterrupted
                ? "interrupted before the reply to \(order.id); \(written)."
                : "no reply within \(wait.formatted()) s to \(order.id); \(written).") + (soFar ?? ""),
            "Ask again, which never does it twice: the same line with --id \(order.id)",
            "See what became of it: identitybus explain \(order.id) --app \(order.app)")
    }
}
