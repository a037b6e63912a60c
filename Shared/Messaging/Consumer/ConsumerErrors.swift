// SPDX-License-Identifier: Apache-2.0

import Contracts

/// The errors of a consumer that are in force, and which of them deserve a line in the log. Pure state, no I/O.
///
/// librdkafka says that a topic is missing once and never says that it is there again; errors of a partition or of the
/// whole client are repeated while they last.
struct ConsumerErrors {
    /// What an error is about. A record from partition 0 says nothing about partition 1.
    enum Place: Hashable {
        case client
        case topic(String)
        case partition(TopicPartition)

        var topic: String? {
            switch self {
            case .client: nil
            case .topic(let name): name
            case .partition(let partition): partition.topic
            }
        }

        var description: String {
            switch self {
            case .client: "-"
            case .topic(let name): name
            case .partition(let partition): partition.description
            }
        }
    }

    private struct Entry {
        var error: KafkaError
        var first: ContinuousClock.Instant
        var last: ContinuousClock.Instant
        /// Still to be logged, should it last.
        var isHeldBack: Bool
        /// Whether it counts as the consumer's state.
        var isInForce = true
        /// When it was first asked for anew since it was told last.
        var asked: ContinuousClock.Instant?
    }

    /// How long a fault of the first moments may last before it is worth a warning, and how long an error that is not
    /// repeated counts.
    static let patience: Duration = .seconds(10)

    /// How often librdkafka is made to fetch anew what it could not fetch.
    private static let again: Duration = .seconds(3)

    private var entries: [Place: Entry] = [:]
    private var quiet = QuietErrors()
    private var askedAgain: ContinuousClock.Instant?

    var isEmpty: Bool { entries.isEmpty }

    /// The newest error that is in force.
    var current: KafkaError? { newest?.error }

    /// The newest error that is in force, in words for people.
    var problem: String? {
        newest.map { place, error in place.topic.map(error.unreadable) ?? error.words }
    }

    private var newest: (place: Place, error: KafkaError)? {
        entries.filter(\.value.isInForce).max { $0.value.last < $1.value.last }.map { ($0.key, $0.value.error) }
    }

    /// Topics of which some partition cannot be read, and why.
    var unreadable: [String: KafkaError] {
        var topics: [String: KafkaError] = [:]
        for case (.partition(let partition), let entry) in entries where entry.isInForce {
            topics[partition.topic] = entry.error
        }
        return topics
    }

    /// Does what is due.
    ///
    /// - Returns: errors whose warning was held back and that have lasted, and partitions that are to be fetched anew.
    mutating func turn(
        now: ContinuousClock.Instant
    ) -> (lasting: [(place: Place, error: KafkaError)], unread: Set<TopicPartition>) {
        (review(now: now), toFetchAnew(now: now))
    }

    /// The partitions that cannot be read, once in three seconds. librdkafka tells of a missing right once, and not of its
    /// end; when it begins to fetch anew, it tells again.
    mutating func toFetchAnew(now: ContinuousClock.Instant) -> Set<TopicPartition> {
        if let askedAgain, askedAgain.duration(to: now) < Self.again { return [] }
        askedAgain = now
        var unread: Set<TopicPartition> = []
        for case (.partition(let partition), let entry) in entries {
            unread.insert(partition)
            entries[.partition(partition)]?.asked = entry.asked ?? now
        }
        return unread
    }

    /// Takes an error in.
    ///
    /// - Parameter mayPass: hold the warning back until the error has lasted.
    /// - Returns: whether it is to be logged as a warning now.
    mutating func note(_ error: KafkaError, at place: Place, mayPass: Bool, now: ContinuousClock.Instant) -> Bool {
        // Names of topics may come without end; the memory of them must not.
        if entries.count >= 1000 { entries = [:] }
        let known = entries[place].flatMap { $0.error.code == error.code ? $0 : nil }
        entries[place] = Entry(
            error: error, first: known?.first ?? now, last: now, isHeldBack: known?.isHeldBack ?? mayPass)
        if entries[place]?.isHeldBack == true { return false }
        return quiet.shouldLog(code: error.code, at: place, now: now)
    }

    /// The group has given us these partitions, perhaps none: it works, and so do they.
    mutating func assigned(_ partitions: [TopicPartition]) {
        if entries.isEmpty { return }
        clear(partitions)
        entries[.client] = nil
        guard partitions.isEmpty else { return }
        // Nothing of the topics may ever become ours, and their return is not told. A warning may still be due.
        for place in entries.keys { entries[place]?.isInForce = false }
    }

    /// A record has come from this partition. To be told in the order in which records and errors come: a record that was
    /// fetched before a right was taken comes before the error, and does not end it.
    mutating func received(from partition: TopicPartition) {
        if entries.isEmpty { return }
        clear([partition])
        entries[.client] = nil
    }

    /// The partitions are not ours any more.
    mutating func removed(_ partitions: [TopicPartition]) {
        for partition in partitions { entries[.partition(partition)] = nil }
    }

    /// Forgets what was not repeated.
    ///
    /// - Returns: errors whose warning was held back and that have lasted.
    mutating func review(now: ContinuousClock.Instant) -> [(place: Place, error: KafkaError)] {
        var due: [(Place, KafkaError)] = []
        for (place, entry) in entries {
            if entry.isHeldBack, entry.first.duration(to: now) >= Self.patience {
                due.append((place, entry.error))
                entries[place]?.isHeldBack = false
            }
            if let silence = Self.silence(of: entry, at: place), silence.duration(to: now) >= Self.patience {
                entries[place] = nil
            }
        }
        return due
    }

    private mutating func clear(_ partitions: some Sequence<TopicPartition>) {
        for partition in partitions {
            entries[.partition(partition)] = nil
            entries[.topic(partition.topic)] = nil
        }
    }

    /// Since when an error could have been repeated and was not; `nil` for one that is told once. A member that may not be
    /// one is told so once, which ends with an assignment; what a partition has, once in each time that it is fetched anew.
    private static func silence(of entry: Entry, at place: Place) -> ContinuousClock.Instant? {
        switch place {
        case .client: entry.error.code == KafkaError.Code.groupAuthorizationFailed ? nil : entry.last
        case .topic: nil
        case .partition: entry.asked
        }
    }
}

/// Keeps an error that repeats from filling the log: one line per error and topic in a minute.
struct QuietErrors {
    private struct Kind: Hashable {
        let code: Int32
        let topic: String?
    }

    private static let pause: Duration = .seconds(60)
    private var lastLogged: [Kind: ContinuousClock.Instant] = [:]

    /// Whether this error deserves a line now.
    mutating func shouldLog(code: Int32, at place: ConsumerErrors.Place, now: ContinuousClock.Instant) -> Bool {
        let kind = Kind(code: code, topic: place.topic)
        if let last = lastLogged[kind], last.duration(to: now) < Self.pause { return false }
        // Names of topics may come without end; the memory of them must not.
        if lastLogged.count >= 1000 { lastLogged = [:] }
        lastLogged[kind] = now
        return true
    }
}
