// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Messaging
import Runtime
import Supervision

/// Looks at the brokers, topics and rights of a cluster that lets us in, and leaves all as it is.
struct ClusterExamination {
    let access: KafkaAccess
    let needs: KafkaNeeds
    let reached: KafkaAccess.Reached

    /// For each question.
    private static let patience = Duration.seconds(4)

    private var kafka: KafkaConfiguration { access.configuration }

    func run() -> [Finding] {
        let places = timed { brokers() }
        let failed = places.filter { $0.level == .fail }
        // What is behind them is asked of each of them at its own address.
        if !failed.isEmpty, failed.count == places.count {
            return places.skippingRest(
                of: .kafka, needs: "the brokers at the addresses that they tell", but: Set(CheckID.firstOfKafka))
        }
        do {
            return places + (try topics(haveAllBrokers: failed.isEmpty))
        } catch {
            let words = (error as? KafkaError)?.words ?? "\(error)"
            let known = Set(CheckID.firstOfKafka + [.kafkaBrokers])
            guard failed.isEmpty else {
                return places.skippingRest(of: .kafka, needs: Self.allBrokers, but: known)
            }
            return (places + [.fail(.kafkaTopics, "the topics cannot be looked at: \(words)", cause: "no-answer")])
                .skippingRest(of: .kafka, needs: "the topics", but: known)
        }
    }

    private static let allBrokers = "all brokers at the addresses that they tell"

    private func topics(haveAllBrokers: Bool) throws -> [Finding] {
        let start = ContinuousClock.now
        let survey = try TopicSurvey(of: needs.topics, reached, timeout: Self.patience)
        let mine = survey.findings.filter { needs.contains($0.topic.spec.name) }
        if survey.isEmbedded {
            return existence(mine, isEmbedded: true).taking(start.duration(to: .now)) + Self.leaders(mine)
                + [.kafkaRights, .kafkaRetention, .kafkaCopies, .kafkaTime, .kafkaMessageSize, .kafkaClock].map {
                    Finding(id: $0, level: .skip, message: "the embedded broker has none of these")
                }
        }
        let found = existence(mine, isEmbedded: false) + Self.leaders(mine) + TopicFindings(mine).all
        let tried = timed { rights(survey.findings) } + found.taking(start.duration(to: .now)) + timed { [clock(mine)] }
        return (haveAllBrokers ? tried : tried.map(Self.withoutBroker)).map(withAddress)
    }

    /// Commands for a shell are to be pasted: nobody has set `B` there.
    private func withAddress(_ finding: Finding) -> Finding {
        var finding = finding
        let address = kafka.bootstrapAddresses.joined(separator: ",")
        finding.fix = finding.fix.map { $0.replacing("\"$B\"", with: address) }
        return finding
    }

    /// A broker that cannot be reached answers nothing: that is its own line already.
    private static func withoutBroker(_ finding: Finding) -> Finding {
        finding.cause == "no-answer" ? .skip(finding.id, needs: allBrokers) : finding
    }

    // MARK: Brokers

    /// Each at the address that it tells clients, which need not be the one that is set.
    private func brokers() -> [Finding] {
        let addresses = (try? reached.admin.brokerAddresses(timeout: Self.patience)) ?? []
        let failures = BrokersAlone(kafka, addresses).failures
        if failures.isEmpty {
            let all = addresses.joined(separator: ", ")
            return [.ok(.kafkaBrokers, "\(all) answer\(addresses.count == 1 ? "s" : "")")]
        }
        let answering = addresses.filter { address in !failures.contains { $0.address == address } }
        return failures.map { address, failure in
            .fail(
                .kafkaBrokers, "\(failure) (the address that it tells its clients)", subject: address,
                fix: "Who runs Kafka sets advertised.listeners to what clients here can reach.",
                cause: failure.cause.rawValue)
        } + (answering.isEmpty ? [] : [.ok(.kafkaBrokers, "\(answering.joined(separator: ", ")) answer")])
    }

    // MARK: Topics

    private func existence(_ topics: [TopicSurvey.Finding], isEmbedded: Bool) -> [Finding] {
        let missing = topics.filter { $0.verdict == .missing }.map(\.topic)
        let there = topics.filter(\.state.exists)
        let partitions = Self.counts(there.map(\.state.partitions))
        let copies = Self.counts(there.map(\.state.replicas))
        var found: [Finding] = []
        for finding in there {
            for flaw in finding.flaws where flaw.setting == "partitions" {
                found.append(
                    .warn(
                        .kafkaTopics, "\(finding.topic.spec.name): \(flaw.words)", subject: finding.topic.spec.name,
                        cause: flaw.setting))
            }
        }
        if there.count + missing.count < topics.count {
            found.append(.skip(.kafkaTopics, needs: "the right to see all topics"))
        }
        if missing.isEmpty {
            return found.isEmpty
                ? [
                    .ok(
                        .kafkaTopics,
                        "\(there.count) of \(topics.count), \(partitions) partitions, \(copies) "
                            + "cop\(copies == "1" ? "y" : "ies")")
                ] : found
        }
        return found + [absence(of: missing, "\(there.count) of \(topics.count)", isEmbedded: isEmbedded)]
    }

    /// - Parameter state: how many are there.
    private func absence(of topics: [DeploymentTopics.Topic], _ state: String, isEmbedded: Bool) -> Finding {
        let missing = topics.map(\.spec)
        let subject = missing.map(\.name).joined(separator: ",")
        let words = "\(state); missing: \(Self.list(missing.map(\.name)))"
        if needs.create == .never {
            return .fail(
                .kafkaTopics, words, subject: subject,
                fix: "TOPIC_CREATE=never: somebody has to make them: identitybus topics --create", cause: "missing")
        }
        // It makes the apps' when they are asked for.
        if isEmbedded, topics.contains(where: { $0.app == nil }) {
            return .fail(
                .kafkaTopics, "\(words), and the embedded broker makes none", subject: subject,
                fix: "Is TOPIC_PREFIX that of the `identitybus up` that runs here? It makes its topics at its start.",
                cause: "missing")
        }
        guard !isEmbedded, let refusal = refusalToCreate(missing) else {
            return .warn(
                .kafkaTopics, "\(words); services make them at their start", subject: subject, cause: "missing")
        }
        let isAnswer = !KafkaError.unreachableCodes.contains(refusal.code)
        if refusal.code == KafkaError.Code.invalidReplicationFactor {
            return .fail(
                .kafkaTopics, "\(words), and they cannot be made: \(refusal.message)", subject: subject,
                fix: "TOPIC_REPLICATION_FACTOR asks for more copies than there are brokers: set it lower.",
                cause: "missing")
        }
        var finding = Finding.fail(
            .kafkaTopics, "\(words), and they may not be made: \(refusal.message)", subject: subject,
            fix: "identitybus topics --create makes them, by a user who may.", cause: isAnswer ? "missing" : "no-answer"
        )
        if [KafkaError.Code.topicAuthorizationFailed, KafkaError.Code.clusterAuthorizationFailed].contains(refusal.code)
        {
            let right = RightsFound(denied: missing.map { KafkaRight(.topic, $0.name, .create) })
            finding.message += "; \(right.words(user: user))"
            finding.fix += right.grants(user: user, roles: needs.roles)
        }
        return finding
    }

    /// Our name in Kafka.
    private var user: String? { kafka.setting("sasl.username") }

    /// Why these topics may not be made; `nil` when they may. Makes none.
    private func refusalToCreate(_ specs: [TopicSpec]) -> KafkaError? {
        do throws(KafkaError) {
            try reached.admin.tryToCreate(specs, timeout: Self.patience)
            return nil
        } catch {
            return error
        }
    }

    static func leaders(_ topics: [TopicSurvey.Finding]) -> [Finding] {
        let without = topics.filter { $0.verdict == .leaderless }
        guard topics.contains(where: \.state.exists) else {
            return [.skip(.kafkaLeaders, needs: "topics that it may see")]
        }
        if without.isEmpty { return [.ok(.kafkaLeaders, "every partition has one")] }
        return without.map { topic in
            .fail(
                .kafkaLeaders,
                "\(topic.topic.spec.name): \(topic.reasons.first ?? "")", subject: topic.topic.spec.name,
                fix: "A broker that has it is away, or the cluster elects: Kafka's own log says which.")
        }
    }

    /// Each number once: `1 or 12`.
    static func counts(_ numbers: [Int]) -> String {
        let all = Set(numbers).sorted().map(String.init)
        return all.count < 2 ? all.joined() : all.dropLast().joined(separator: ", ") + " or " + all[all.count - 1]
    }

    static func list(_ names: [String]) -> String {
        names.prefix(3).joined(separator: ", ") + (names.count > 3 ? " and \(names.count - 3) more" : "")
    }

    // MARK: Rights

    /// Tries them, without effect.
    private func rights(_ topics: [TopicSurvey.Finding]) -> [Finding] {
        let hidden = topics.filter {
            $0.state.error?.code == KafkaError.Code.topicAuthorizationFailed && needs.contains($0.topic.spec.name)
        }
        let existing = topics.filter(\.state.exists).map(\.topic.spec.name)
        let read = needs.topics(to: .read, among: existing)
        let written = needs.topics(to: .write, among: existing)
        let (kafka, patience) = (kafka, Self.patience)
        let looks: [@Sendable () -> RightsFound] =
            [{ RightsFound.reading(read, kafka, patience) }]
            + needs.groups.map { group in { RightsFound.joining(group, kafka, patience) } }
        let others = SideBySide(looks)
        var found = RightsFound()
        found.denied = hidden.map(\.topic.spec.name).flatMap { topic in
            needs.rights.filter { $0.covers(topic) && [.read, .write].contains($0.operation) }
                .map { KafkaRight(.topic, topic, $0.operation) }
        }
        if let writes = try? reached.admin.deniedWrites(to: written, timeout: patience) {
            found.denied += writes.denied.keys.map { KafkaRight(.topic, $0, .write) }
            found.silent += writes.unanswered
        }
        for result in others.results(by: .now + patience + .seconds(1)) {
            if let result { found.add(result) } else { found.silent.append("a group") }
        }
        let counts = [("read", read.count), ("write", written.count), ("groups", needs.groups.count)]
        return found.findings(counts, user: user, roles: needs.roles)
    }

    // MARK: Clock

    /// A record that the broker has dated later than now is the one sign of its clock that can be read.
    private func clock(_ topics: [TopicSurvey.Finding]) -> Finding {
        let places = topics.filter { $0.settings["message.timestamp.type"] == "LogAppendTime" && $0.state.isUsable }
            .flatMap { topic in
                (0..<Int32(clamping: topic.state.partitions)).map {
                    TopicPartition(topic: topic.topic.spec.name, partition: $0)
                }
            }
        guard !places.isEmpty, let bounds = try? reached.admin.bounds(of: places, timeout: .seconds(2)) else {
            return .skip(.kafkaClock, needs: "records that the broker has dated")
        }
        let newest = bounds.filter { $0.value.high > $0.value.low }.mapValues { $0.high - 1 }
        let times = RecordTimes.look(newest, kafka, timeout: .seconds(2), logger: .quiet)
        guard let latest = times.values.max() else {
            return .skip(.kafkaClock, needs: "records that the broker has dated")
        }
        return Self.clock(latest: latest, now: Timestamp.now.milliseconds)
    }

    /// - Parameters:
    ///   - latest: when the newest record was written, by its broker.
    ///   - now: by our clock.
    static func clock(latest: Int64, now: Int64) -> Finding {
        let ahead = latest - now
        let seconds = (Double(abs(ahead)) / 1000).formatted(.number.precision(.fractionLength(1)))
        if ahead <= 1000 { return .ok(.kafkaClock, "the newest record is \(ahead > 0 ? "0.0" : seconds) s old") }
        let words = "the broker is at least \(seconds) s ahead of us"
        let fix = "Set both by NTP: links are refused that come with a time to come, and waiting is measured wrongly."
        return ahead <= 5000 ? .warn(.kafkaClock, words, fix: fix) : .fail(.kafkaClock, words, fix: fix)
    }
}

extension CheckID {
    /// What is known once a broker has answered.
    static let firstOfKafka: [CheckID] = [.kafkaReachable, .kafkaTLS, .kafkaCertificate, .kafkaSignIn]
}

/// What trying has shown.
struct RightsFound: Sendable {
    var denied: [KafkaRight] = []
    /// Topics and groups that have not answered in time.
    var silent: [String] = []

    mutating func add(_ other: RightsFound) {
        denied += other.denied
        silent += other.silent
    }

    static func reading(_ topics: [String], _ kafka: KafkaConfiguration, _ timeout: Duration) -> RightsFound {
        guard let answer = try? ReadRights.look(at: topics, kafka, timeout: timeout, logger: .quiet) else {
            return RightsFound(silent: topics)
        }
        return RightsFound(
            denied: answer.denied.keys.map { KafkaRight(.topic, $0, .read) }, silent: Array(answer.unanswered))
    }

    static func joining(_ group: String, _ kafka: KafkaConfiguration, _ timeout: Duration) -> RightsFound {
        switch try? ReadRights.look(atGroup: group, kafka, timeout: timeout, logger: .quiet) {
        case .allowed: RightsFound()
        case .denied: RightsFound(denied: [KafkaRight(.group, group, .read)])
        case .silent, nil: RightsFound(silent: [group])
        }
    }

    /// - Parameters:
    ///   - counts: how many of each kind there are.
    ///   - user: our name in Kafka.
    ///   - roles: whose rights they are.
    func findings(_ counts: [(String, Int)], user: String?, roles: [String]) -> [Finding] {
        let all = counts.map(\.1).reduce(0, +)
        let kinds = counts.map { "\($0) \($1)" }.joined(separator: ", ")
        var found: [Finding] = []
        if !denied.isEmpty {
            var finding = Finding.fail(
                .kafkaRights, words(user: user), subject: missing.map(\.name).joined(separator: ","), cause: "no-right")
            finding.fix = grants(user: user, roles: roles)
            found.append(finding)
        }
        if !silent.isEmpty {
            found.append(
                .warn(
                    .kafkaRights, "no answer in time about \(ClusterExamination.list(silent.sorted()))",
                    subject: silent.sorted().joined(separator: ","), cause: "no-answer"))
        }
        return found.isEmpty ? [.ok(.kafkaRights, "\(all) of \(all) (\(kinds))")] : found
    }

    private var missing: [KafkaRight] { Set(denied).sorted() }

    /// Who lacks which rights to what.
    func words(user: String?) -> String {
        let lacks = KafkaRight.Resource.allCases.flatMap { resource in
            KafkaRight.Operation.allCases.compactMap { operation -> String? in
                let names = missing.filter { $0.resource == resource && $0.operation == operation }.map(\.name)
                if names.isEmpty { return nil }
                let things = resource == .topic ? "topic" : resource == .group ? "group" : "cluster"
                return
                    "\(operation.rawValue) on the \(things)\(names.count == 1 ? "" : "s") \(ClusterExamination.list(names))"
            }
        }
        return "\(user.map { "Kafka user \($0)" } ?? "this Kafka user") lacks \(lacks.joined(separator: "; "))"
    }

    /// The commands that give them: four, and how to see the rest.
    func grants(user: String?, roles: [String]) -> [String] {
        let grants = KafkaGrant.all(missing).map { $0.shell("User:\(user ?? "NAME")") }
        let principals = roles.map { "\($0)=User:\(user ?? "NAME")" }.joined(separator: ",")
        let more = "and more: identitybus topics --acls --principal \(principals)"
        return Array(grants.prefix(4)) + (grants.count > 4 ? [more] : [])
    }
}
