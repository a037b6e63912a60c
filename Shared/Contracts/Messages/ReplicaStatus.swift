// SPDX-License-Identifier: Apache-2.0

/// How one replica of a service or of the gateway is doing: the data of its record on `identity.status.v1`, which each replica replaces every
/// ten seconds (docs/contracts.md "Status"). It names no person and no app.
public struct ReplicaStatus: Message, Hashable {
    public static let type = "identity.status.v1"
    /// How often it is written.
    public static let period = Duration.seconds(10)

    /// Why a replica is not ready: a line of `/readyz`.
    public struct Failure: Codable, Sendable, Hashable {
        public var name: String
        public var detail: String

        public init(name: String, detail: String) {
            self.name = name
            self.detail = detail
        }
    }

    /// The version of the apps file that is in force.
    public struct Apps: Codable, Sendable, Hashable {
        public var digest: String
        /// Whether the file as it is now is in force.
        public var isValid: Bool

        public init(digest: String, isValid: Bool) {
            self.digest = digest
            self.isValid = isValid
        }
    }

    /// What was decided since the status before.
    public struct Decided: Codable, Sendable, Hashable {
        public var seconds: Double
        /// How many decisions ended how.
        @SortedKeys public var outcomes: [String: Int]
        /// Of those that were refused.
        @SortedKeys public var reasons: [String: Int]
        /// How long a batch took to be decided and committed, on the average; missing when there was none.
        public var commitMilliseconds: Double?

        public init(
            seconds: Double, outcomes: [String: Int], reasons: [String: Int], commitMilliseconds: Double? = nil
        ) {
            self.seconds = seconds
            self.outcomes = outcomes
            self.reasons = reasons
            self.commitMilliseconds = commitMilliseconds
        }
    }

    /// Of the service, whichever replica says it.
    public struct DeadLetters: Codable, Sendable, Hashable {
        public var open: Int64
        public var oldestSeconds: Double?

        public init(open: Int64, oldestSeconds: Double? = nil) {
            self.open = open
            self.oldestSeconds = oldestSeconds
        }
    }

    public var service: String
    /// Host and process, as in the progress table.
    public var replica: String
    public var version: String
    public var commit: String
    public var startedAt: Timestamp
    public var isReady: Bool
    public var failing: [Failure]
    public var apps: Apps
    /// How many partitions it decides.
    public var partitions: Int
    /// What stands in the topics and is not decided, and for how long the oldest of it; missing when it is not known. Of a
    /// gateway: how many requests wait for an answer.
    public var waiting: Int64?
    public var oldestSeconds: Double?
    /// Missing in a gateway, which decides nothing.
    public var decided: Decided?
    public var deadLetters: DeadLetters?

    public init(
        service: String, replica: String, version: String, commit: String, startedAt: Timestamp, isReady: Bool,
        failing: [Failure] = [], apps: Apps, partitions: Int, waiting: Int64? = nil, oldestSeconds: Double? = nil,
        decided: Decided? = nil, deadLetters: DeadLetters? = nil
    ) {
        self.service = service
        self.replica = replica
        self.version = version
        self.commit = commit
        self.startedAt = startedAt
        self.isReady = isReady
        self.failing = failing
        self.apps = apps
        self.partitions = partitions
        self.waiting = waiting
        self.oldestSeconds = oldestSeconds
        self.decided = decided
        self.deadLetters = deadLetters
    }

    /// Of the record: the newest one of each replica is kept.
    public var key: String { "\(service)/\(replica)" }

    /// - Parameter id: of the envelope.
    package func record(to topic: String, id: String, now: Timestamp) throws -> Record {
        var attributes = EventAttributes(
            id: id, source: "identitybus/\(service)", type: Self.type, time: now.rfc3339)
        attributes.subject = key
        return Record(
            topic: topic, key: Array(key.utf8),
            value: try CloudEvent(attributes: attributes, data: self).encoded(),
            headers: [Header(HeaderName.contentType, HeaderName.structuredContentType)])
    }
}
