// SPDX-License-Identifier: Apache-2.0

package import Contracts
import Foundation
import Logging
import Messaging
import Synchronization

/// Looks every two seconds whether the brokers answer and the service's topics are all there, now and then whether it may
/// write to them, and says so in ``LoopHealth``. Clients tell of errors once, and of their end not at all, so readiness
/// does not rest on what they happened to say. Also asks where logs begin and end, for the loop, which does not wait: over
/// a consumer's connection the answer would come behind its long fetch.
///
/// Runs on a thread of its own, because looking blocks; the other members may be called from any thread.
package final class BrokerWatch: Sendable {
    private static let period = Duration.seconds(2)
    private static let timeout = Duration.seconds(4)
    /// How often dead letters are counted.
    private static let deadLettersPeriod = Duration.seconds(5)

    /// The service's topics, but for the apps' own, to which it writes too.
    struct Topics: Sendable {
        var service: String
        var all: [String]
        var written: Set<String>
        var deadLetters: String
        var deadLetterActions: String
        /// What becomes of one that is missing.
        var create: TopicCreate
    }

    /// Where a log begins, and the offset of its next record.
    package typealias Bounds = (low: Int64, high: Int64)

    private struct State {
        var cluster: String?
        var partitions: [String: Int] = [:]
        var asked: Set<TopicPartition> = []
        var bounds: [TopicPartition: Bounds] = [:]
        /// The topics of the apps, and whether they are still to be made.
        var appTopics = AppTopics()
        var areNew = false
        /// A topic of somebody else to which answers were written, and whether it is there.
        var answered: (topic: String, exists: Bool)?
        var deadLetters: DeadLetterBoard.Count?
        var isStopped = false
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - partitions: of each topic, as far as they are known.
    ///   - appTopics: those that are made already and watched.
    package init(cluster: String, partitions: [String: Int], appTopics: AppTopics = AppTopics()) {
        state = Mutex(State(cluster: cluster, partitions: partitions, appTopics: appTopics))
    }

    /// The id of the cluster that answered last. `nil` while nobody has said it.
    var cluster: String? { state.withLock { $0.cluster } }

    /// What stands in the service's dead letter topic, as it was counted last.
    var deadLetters: DeadLetterBoard.Count? { state.withLock { $0.deadLetters } }

    /// How many partitions a topic has.
    func partitions(of topic: String) -> Int? { state.withLock { $0.partitions[topic] } }

    /// Where these logs begin and end, of those that have said so since they were first asked about. The others are asked
    /// from now on; what is not among them is forgotten. Does not block.
    func bounds(of places: Set<TopicPartition>) -> [TopicPartition: Bounds] {
        state.withLock { state in
            if state.asked.isEmpty, places.isEmpty { return [:] }
            state.asked = places
            state.bounds = state.bounds.filter { places.contains($0.key) }
            return state.bounds
        }
    }

    /// The apps have these topics: they are made where they are missing, and watched from here on.
    func want(_ appTopics: AppTopics) {
        state.withLock { state in
            state.areNew = state.areNew || appTopics != state.appTopics
            state.appTopics = appTopics
        }
    }

    /// Answers are written to this topic, which somebody else makes: the right to it is looked for from here on.
    func answers(to topic: String) {
        state.withLock { state in
            if state.answered?.topic == topic { return }
            state.answered = (topic, false)
            state.areNew = true
        }
    }

    func stop() { state.withLock { $0.isStopped = true } }

    // MARK: What is found out

    /// The logs that were asked about and have not said where they begin and end.
    package var unanswered: Set<TopicPartition> { state.withLock { $0.asked.subtracting($0.bounds.keys) } }

    /// Where logs begin and end. What is not asked about any more is passed over.
    package func tell(_ bounds: [TopicPartition: Bounds]) {
        state.withLock { state in
            for (place, found) in bounds where state.asked.contains(place) { state.bounds[place] = found }
        }
    }

    /// Which cluster answered, if it said that, and how many partitions there are of each topic.
    package func tell(cluster: String?, partitions: [String: Int]) {
        state.withLock { state in
            state.cluster = cluster ?? state.cluster
            state.partitions.merge(partitions) { _, new in new }
        }
    }

    // MARK: The thread that looks

    /// Starts looking.
    /// - Parameter admin: belongs to the watch from here on.
    func start(
        _ admin: sending KafkaAdmin, _ kafka: KafkaConfiguration, _ topics: Topics, health: LoopHealth, logger: Logger
    ) {
        let box = Mutex<KafkaAdmin?>(admin)
        let thread = Thread { [self] in
            guard let admin = box.withLock({ $0.take() }) else { return }
            watch(admin, kafka, topics, health, logger)
        }
        thread.name = "identitybus-watch"
        thread.start()
    }

    private func watch(
        _ admin: KafkaAdmin, _ kafka: KafkaConfiguration, _ topics: Topics, _ health: LoopHealth, _ logger: Logger
    ) {
        var rights = WriteRights()
        var count = Ticker(every: Self.deadLettersPeriod, from: .now - Self.deadLettersPeriod)
        var deadLetters = DeadLetterBoard(service: topics.service)
        var actions = DeadLetterActions(letters: topics.deadLetters, actions: topics.deadLetterActions)
        while !state.withLock({ $0.isStopped }) {
            if look(admin, topics, health) {
                measure(health.lag, admin, kafka, logger)
                lookAtRights(&rights, admin, topics.written, health)
                if count.ticks(.now) {
                    self.count(&deadLetters, &actions, in: topics.deadLetters, admin, kafka, logger)
                }
            }
            let next = ContinuousClock.now + Self.period
            while ContinuousClock.now < next, !state.withLock({ $0.isStopped }) {
                askForBounds(admin)
                Thread.sleep(forTimeInterval: 0.1)
            }
        }
        admin.close(timeout: .seconds(1))
    }

    /// How far the loop is behind. What does not answer in time is measured the next time.
    private func measure(_ lag: LagBoard, _ admin: KafkaAdmin, _ kafka: KafkaConfiguration, _ logger: Logger) {
        let places = lag.wanted
        guard !places.isEmpty, let ends = try? admin.ends(of: places, timeout: Self.timeout) else { return }
        lag.measure(ends: ends, now: .now) { offsets in
            RecordTimes.look(offsets, kafka, timeout: Self.period, logger: logger)
        }
    }

    private func count(
        _ board: inout DeadLetterBoard, _ actions: inout DeadLetterActions, in topic: String, _ admin: KafkaAdmin,
        _ kafka: KafkaConfiguration, _ logger: Logger
    ) {
        let places = (0..<Int32(clamping: partitions(of: topic) ?? 0)).map {
            TopicPartition(topic: topic, partition: $0)
        }
        guard !places.isEmpty, let found = try? admin.bounds(of: places + [actions.place], timeout: Self.timeout)
        else { return }
        let bounds = found.filter { $0.key.topic == topic }
        guard bounds.count == places.count else { return }
        let isRead =
            found[actions.place].map { actions.read($0, kafka, timeout: Self.period, logger: logger) } ?? false
        var unreadable: String?
        let count = board.show(bounds, closed: isRead ? actions.closed : nil) {
            RecordTimes.look($0, kafka, timeout: Self.period, logger: logger) { unreadable = $0 }
        }
        state.withLock { $0.deadLetters = count }
        guard let problem = board.read(unreadable) else { return }
        logger.warning(
            "how old the oldest dead letter is cannot be seen",
            metadata: ["event": "dead-letters.unreadable", "problem": "\(problem)"])
    }

    private func askForBounds(_ admin: KafkaAdmin) {
        let places = unanswered
        guard !places.isEmpty, let bounds = try? admin.bounds(of: places.sorted(), timeout: Self.timeout) else {
            return
        }
        tell(bounds)
    }

    /// - Returns: whether a broker answers.
    private func look(_ admin: KafkaAdmin, _ own: Topics, _ health: LoopHealth) -> Bool {
        let started = ContinuousClock.now
        do {
            let (appTopics, answered, areNew) = state.withLock { ($0.appTopics, $0.answered?.topic, $0.areNew) }
            let topics = own.all + appTopics.specs.map(\.name)
            if areNew { try make(appTopics, own.create, watching: topics + [answered].compactMap { $0 }, admin) }
            let states = try admin.topicStates(timeout: Self.timeout)
            let cluster = try admin.clusterID(timeout: Self.timeout)
            tell(cluster: cluster, partitions: states.filter(\.value.exists).mapValues(\.partitions))
            if let answered { state.withLock { $0.answered?.exists = states[answered]?.exists == true } }
            let problems = Set(topics).sorted().compactMap { topic -> String? in
                guard let found = states[topic] else { return "topic \(topic) does not exist" }
                if let error = found.error { return error.unusable(topic) }
                return found.isUsable ? nil : "topic \(topic) has partitions without a leader: \(found.leaderless)"
            }
            health.broker(nil)
            health.topics(problems.isEmpty ? nil : problems.joined(separator: ", "))
            return true
        } catch {
            health.kafka(failed: error, took: started.duration(to: .now))
            return error.failure == nil
        }
    }

    /// Whether everything may be written to.
    private func lookAtRights(
        _ rights: inout WriteRights, _ admin: KafkaAdmin, _ topics: Set<String>, _ health: LoopHealth
    ) {
        let others = state.withLock { state in
            let answered = state.answered.flatMap { $0.exists ? $0.topic : nil }
            return state.appTopics.written + [answered].compactMap { $0 }
        }
        let all = topics.union(others)
        guard (try? rights.look(at: all, admin, timeout: Self.timeout)) != nil else { return }
        health.unwritable(rights.problem)
    }

    private func make(
        _ appTopics: AppTopics, _ create: TopicCreate, watching topics: [String], _ admin: KafkaAdmin
    ) throws(KafkaError) {
        try admin.make(appTopics.specs, create, watching: topics)
        state.withLock { state in
            // Not when the apps file was read again meanwhile.
            if state.appTopics == appTopics { state.areNew = false }
        }
    }
}

extension KafkaAdmin {
    /// Makes the apps' topics where they are missing. The embedded broker makes what is asked for.
    func make(
        _ appTopics: [TopicSpec], _ create: TopicCreate, watching topics: [String]
    ) throws(KafkaError) {
        try watch(topics: topics)
        if appTopics.isEmpty { return }
        _ = try topicStates(timeout: .seconds(4))
        try ensureTopics(appTopics, creating: create, timeout: .seconds(10))
    }
}
