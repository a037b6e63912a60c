// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Logging
import Messaging
import Runtime
import Synchronization
import WireJSON

/// Reads from Kafka what the console shows of the deployment. On threads of its own, and only while somebody looks: a
/// gateway whose console nobody opens has neither a thread nor a connection for it.
final class ConsoleReader: Sendable {
    fileprivate struct State {
        /// The newest status of each replica, by the record's key.
        var replicas: [String: JSONValue] = [:]
        /// Goes up with each that comes.
        var version = 0
        var isFollowing = false
        /// Whether all that was there at the start is read.
        var isComplete = false
        var askedAt = ContinuousClock.now
        var problem: String?
    }

    private let configuration: ServiceConfiguration
    private let logger: Logger
    private let state = Mutex(State())
    private let letters: LetterCount
    /// Of this process: what another one has counted is not known here.
    private let run = UUID().uuidString.prefix(8).lowercased()

    /// For how long somebody who has asked may ask again without a new beginning.
    private static let patience = Duration.seconds(60)
    /// How long an answer waits for something new: below the times at which proxies give up.
    private static let longPoll = Duration.seconds(20)
    /// What is older is no replica's that still runs.
    private static let oldest = Duration.seconds(600)

    init(_ configuration: ServiceConfiguration, _ logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        letters = LetterCount(configuration, logger)
    }

    /// How the replicas are doing, as soon as that is not what the caller has.
    /// - Parameter after: `next` of the answer before.
    func status(after: String?) async throws(APIFailure) -> JSONValue {
        follow()
        let deadline = ContinuousClock.now + (after == nil ? .seconds(4) : Self.longPoll)
        while ContinuousClock.now < deadline, !Task.isCancelled {
            let (next, isComplete) = state.withLock { ("\(run)-\($0.version)", $0.isComplete || $0.problem != nil) }
            if isComplete, next != after { break }
            try? await Task.sleep(for: .milliseconds(100))
        }
        let now = state.withLock { $0 }
        if let problem = now.problem, now.replicas.isEmpty {
            throw APIFailure(503, "SERVICE_UNAVAILABLE", "The statuses cannot be read: \(problem)", retryAfter: 5)
        }
        return [
            "at": .string(Timestamp.now.rfc3339), "next": .string("\(run)-\(now.version)"),
            "replicas": .array(now.replicas.sorted { $0.key < $1.key }.map(\.value)),
        ]
    }

    /// The dead letters of an app by reason.
    /// - Parameter nobodys: whether those that name no app count too.
    func deadLetters(of app: AppID, nobodys: Bool) async throws(APIFailure) -> JSONValue {
        do {
            return try await letters.groups(of: app, nobodys: nobodys)
        } catch {
            throw APIFailure(503, "SERVICE_UNAVAILABLE", "The dead letters cannot be read: \(error)", retryAfter: 5)
        }
    }

    private func follow() {
        let begins = state.withLock { state in
            state.askedAt = .now
            if state.isFollowing { return false }
            let version = state.version
            state = State()
            (state.version, state.isFollowing) = (version + 1, true)
            return true
        }
        guard begins else { return }
        let thread = Thread { [self] in
            do {
                try read()
            } catch {
                state.withLock { $0.problem = "\(error)" }
                logger.notice(
                    "the console cannot read the replicas' statuses",
                    metadata: ["event": "console.unreadable", "problem": "\(error)"])
            }
            state.withLock { $0.isFollowing = false }
        }
        thread.name = "gateway-console"
        thread.start()
    }

    private func read() throws {
        let topic = configuration.topics.status
        let tail = try Self.tail(
            configuration, topic,
            from: .time(Timestamp(milliseconds: Timestamp.now.milliseconds - Self.oldest.inMilliseconds)),
            logger)
        defer { tail.close() }
        let began = ContinuousClock.now
        while state.withLock({ $0.askedAt.duration(to: .now) < Self.patience }) {
            let records = tail.poll(maxRecords: 1000, timeout: .milliseconds(200))
            let problem = tail.unreadable[topic]?.words
            state.withLock { state in
                for record in records { state.take(record) }
                state.problem = problem
                // Nothing more comes at once: that was all.
                if records.isEmpty, began.duration(to: .now) > .seconds(1) { state.isComplete = true }
            }
        }
    }

    /// - Throws: when the topic is not there, or no broker answers.
    static func tail(
        _ configuration: ServiceConfiguration, _ topic: String, from start: KafkaTail.Start, _ logger: Logger
    ) throws -> KafkaTail {
        let admin = try KafkaAdmin(configuration: configuration.kafka, logger: logger)
        defer { admin.close(timeout: .seconds(1)) }
        try admin.reach(timeout: .seconds(3))
        guard let partitions = try admin.existingTopics(timeout: .seconds(5))[topic], partitions > 0 else {
            throw KafkaError(code: KafkaError.Code.unknownTopic, message: "there is no topic \(topic)")
        }
        return try KafkaTail(
            configuration: configuration.kafka, partitions: [topic: partitions], from: start, logger: logger)
    }
}

extension ConsoleReader.State {
    /// What is no status is passed over: Kafka's rights say who may write there, and whoever may can be of a later version.
    fileprivate mutating func take(_ record: KafkaRecord) {
        guard let key = record.key.map({ String(decoding: $0, as: UTF8.self) }) else { return }
        version += 1
        guard let value = record.value, let envelope = try? JSONValue(parsing: value),
            envelope["type"]?.stringValue == ReplicaStatus.type, let data = envelope["data"],
            (try? WireJSONDecoder().decode(ReplicaStatus.self, from: data)) != nil, var object = data.objectValue,
            let time = envelope["time"]?.stringValue
        else {
            replicas[key] = nil
            return
        }
        object["time"] = .string(time)
        replicas[key] = .object(object)
    }
}
