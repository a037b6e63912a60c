// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Logging
import Messaging
import Runtime
import WireJSON

/// Counts dead letters by reason for whoever looks at the console. Several who look at the same time are told the same.
actor LetterCount {
    /// A letter, as far as it is counted.
    private struct Letter: Sendable {
        var service: String
        var place: LetterPlace
        var reason: String
        var app: String?
        var isOpen = true
    }

    private struct Found: Sendable {
        var letters: [Letter] = []
        /// Whether all were read.
        var isComplete = true
    }

    private let configuration: ServiceConfiguration
    private let logger: Logger
    private var reading: Task<Found, any Error>?
    private var readAt: ContinuousClock.Instant?

    /// The newest of each partition: a flood of letters must not be read by everybody who looks.
    private static let mostOfPartition: Int64 = 1000
    private static let timeout = Duration.seconds(5)
    /// For how long what was counted is told again.
    private static let age = Duration.seconds(5)

    init(_ configuration: ServiceConfiguration, _ logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    /// - Parameter nobodys: whether those that name no app count too.
    func groups(of app: AppID, nobodys: Bool) async throws -> JSONValue {
        let found = try await newest().value
        let own = found.letters.filter { $0.app == app.text || nobodys && $0.app == nil }
        let groups = Dictionary(grouping: own) { [$0.service, $0.reason] }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
        return [
            "isComplete": .bool(found.isComplete),
            "groups": .array(groups.map { Self.group($0.key[0], $0.key[1], $0.value) }),
        ]
    }

    private static func group(_ service: String, _ reason: String, _ letters: [Letter]) -> JSONValue {
        let open = letters.filter(\.isOpen)
        let newest = letters.max { $0.place.written < $1.place.written }
        let example = (open.last ?? letters.last)?.place
        var group: JSONObject = [
            "service": .string(service), "reason": .string(reason), "letters": .number(JSONNumber(letters.count)),
            "open": .number(JSONNumber(open.count)),
        ]
        group["oldest"] = open.map(\.place.written).min().map { .string(Timestamp(milliseconds: max(0, $0)).rfc3339) }
        group["newest"] = newest.map { .string(Timestamp(milliseconds: max(0, $0.place.written)).rfc3339) }
        group["example"] = example.map { .string("\(service)/\($0.partition)@\($0.offset)") }
        return .object(group)
    }

    /// What is being read, or was a moment ago.
    private func newest() -> Task<Found, any Error> {
        if let reading, let readAt, readAt.duration(to: .now) < Self.age { return reading }
        let (configuration, logger) = (configuration, logger)
        let task: Task<Found, any Error> = Task {
            try await withCheckedThrowingContinuation { continuation in
                let thread = Thread { continuation.resume(with: Result { try Self.read(configuration, logger) }) }
                thread.name = "gateway-letters"
                thread.start()
            }
        }
        (reading, readAt) = (task, .now)
        return task
    }

    private static func read(_ configuration: ServiceConfiguration, _ logger: Logger) throws -> Found {
        let admin = try KafkaAdmin(configuration: configuration.kafka, logger: logger)
        defer { admin.close(timeout: .seconds(1)) }
        try admin.reach(timeout: .seconds(3))
        let topics = try admin.existingTopics(timeout: timeout)
        var found = Found()
        for service in Topics.services {
            let (letters, actions) = (
                configuration.topics.deadLetters(service), configuration.topics.deadLetterActions(service)
            )
            guard let count = topics[letters] else { continue }
            let places = (0..<Int32(clamping: count)).map { TopicPartition(topic: letters, partition: $0) }
            let log = TopicPartition(topic: actions, partition: LetterHandling.partition)
            let bounds = try admin.bounds(of: places + (topics[actions] == nil ? [] : [log]), timeout: timeout)
            var handled = HandledLetters()
            found.isComplete =
                try read(bounds.filter { $0.key == log }, mostOfPartition: .max, configuration, logger) { record in
                    if let handling = LetterHandling(record) { handled.take(handling) }
                } && found.isComplete
            var own: [Letter] = []
            let isComplete = try read(
                bounds.filter { $0.key.topic == letters }, mostOfPartition: mostOfPartition, configuration, logger
            ) { record in
                if let letter = letter(record, of: service) { own.append(letter) }
            }
            found.isComplete = found.isComplete && isComplete && bounds.count >= places.count
            for index in own.indices { own[index].isOpen = handled[own[index].place].isOpen }
            found.letters += own
        }
        return found
    }

    /// Reads logs to where they ended.
    /// - Returns: whether all of it was read.
    private static func read(
        _ bounds: [TopicPartition: (low: Int64, high: Int64)], mostOfPartition: Int64,
        _ configuration: ServiceConfiguration, _ logger: Logger, take: (KafkaRecord) -> Void
    ) throws -> Bool {
        var ends = bounds.filter { $0.value.high > $0.value.low }.mapValues(\.high)
        if ends.isEmpty { return true }
        var isWhole = true
        var starts: [TopicPartition: Int64] = [:]
        for (place, end) in ends {
            let low = bounds[place]?.low ?? 0
            let start = mostOfPartition > end - low ? low : end - mostOfPartition
            starts[place] = start
            isWhole = isWhole && start == low
        }
        let tail = try KafkaTail(configuration: configuration.kafka, readingFrom: starts, logger: logger)
        defer { tail.close() }
        let deadline = ContinuousClock.now + timeout
        while !ends.isEmpty, ContinuousClock.now < deadline {
            for record in tail.poll(maxRecords: 1000, timeout: .milliseconds(100)) {
                take(record)
                if let end = ends[record.topicPartition], record.offset + 1 >= end { ends[record.topicPartition] = nil }
            }
        }
        return isWhole && ends.isEmpty
    }

    /// - Returns: `nil` for a record that is no dead letter.
    private static func letter(_ record: KafkaRecord, of service: String) -> Letter? {
        guard let reason = record.header("dlq_reason") else { return nil }
        let place = LetterPlace(
            partition: record.topicPartition.partition, offset: record.offset, written: record.timestampMs)
        // Of what no envelope can be read from, the key tells, in the form of all our keys.
        let named = try? EnvelopeReader.open(value: record.value, headers: record.headers).attributes.appID
        let key = record.key.map { String(decoding: $0, as: UTF8.self) }
        let ofKey = key.flatMap { key in key.firstIndex(of: "/").map { String(key[..<$0]) } }
        return Letter(
            service: service, place: place, reason: String(decoding: reason, as: UTF8.self), app: named ?? ofKey)
    }
}
