// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation
import Messaging
import Observability
import Runtime
import Supervision

struct WatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Shows events, replies and dead letters as they come, until Ctrl-C.",
        discussion: """
            A line is: time (UTC), what it is, type, Kafka key, what it says, id of the command. OK and NO are replies, \
            DEAD is a dead letter. What is there already (--since, --from-beginning) comes first, in the order of time; \
            --until now ends behind it. \
            Where the internal key or IDENTITYBUS_EVENTS_KEYS is known, a line about an event or a reply that no service \
            has signed says so.
            """)

    @Option(help: "Topics to watch; * stands for anything. Default: all events, replies and dead letters.")
    var topic: [String] = []

    @Option(
        help: ArgumentHelp(
            "Start at this time: 10m (ago), 18:30 (UTC), 2030-01-31, 2030-01-31T18:30:00Z.", valueName: "time"))
    var since: TimePoint?

    @Option(
        help: ArgumentHelp(
            "End at this time: now, 10m (ago), 18:30 (UTC), 2030-01-31, 2030-01-31T18:30:00Z.", valueName: "time"))
    var until: TimePoint?

    @Flag(help: "Start with the records that are there already.")
    var fromBeginning = false

    @Option(help: "Only of this app.")
    var app: String?

    @Option(help: "Only with this Kafka key, such as demo/ada; * stands for anything.")
    var key: String?

    @Option(help: "Only of this command: its replies and what follows from it.")
    var id: String?

    @Option(parsing: .unconditional, help: "End after so many lines.", transform: parsedCount)
    var limit: Int?

    @Flag(help: "Topics of other deployments too, whose names begin with another TOPIC_PREFIX.")
    var allPrefixes = false

    @Flag(help: "Print each record as one JSON line.")
    var json = false

    @Option(help: "Colours. auto: on a terminal, unless NO_COLOR is set.")
    var color = ColourChoice.auto

    @Flag(help: "Print authentication codes, tokens and the like too, in place of \u{2039}hidden\u{203A}.")
    var showSecrets = false

    @Flag(help: "With --json: print what is no envelope too, as it is. It may hold secrets of its sender.")
    var raw = false

    @OptionGroup var deployment: Deployment

    enum ColourChoice: String, ExpressibleByArgument, CaseIterable { case auto, always, never }

    func validate() throws {
        if raw, !json { throw ValidationError("--raw goes with --json") }
        if since != nil, fromBeginning { throw ValidationError("--since and --from-beginning: give one of them") }
        guard let until, until.time <= .now else { return }
        if since == nil, !fromBeginning {
            throw ValidationError(
                "--until names a time that is over, so say where to begin: --since 10m --until now, or --from-beginning "
                    + "--until now. A time to come is 18:30 (UTC) or 2030-01-31T18:30:00Z.")
        }
        if let since, since.time > until.time { throw ValidationError("--since is behind --until") }
    }

    func run() throws {
        let interruption = Interruption()
        // Dead letters may well be of an app that there is not.
        do {
            if let app { try deployment.refuseUnknown(AppID(app)) }
        } catch let problem as Problem {
            complain("warning   \(problem.what)".harmless)
        }
        let kafka = try deployment.kafka()
        let publications = Publications(try deployment.keys(), topics: deployment.topics)
        let reached = try kafka.reach { interruption.isRequested }
        defer { reached.admin.close(timeout: .seconds(1)) }
        let watched = try choose(from: reached, kafka)
        let filter = RecordFilter(app: app, key: key, id: id, since: since?.time, until: until?.time)
        let line = RecordLine(
            showsSecrets: showSecrets, showsRaw: raw,
            isColoured: color == .always || color == .auto && Terminal.hasColours)
        let follower = try Follower(
            kafka, admin: reached.admin, partitions: watched,
            from: fromBeginning ? .beginning : since.map { .time($0.time) } ?? .end, filter: filter,
            limits: Follower.Limits(until: until?.time, count: limit)
        ) { record in
            if json {
                say(line.json(record))
            } else {
                say((isForged(record, publications) ? "NOT SIGNED BY A SERVICE  " : "") + line.text(record))
            }
        }
        if until.map({ $0.time > .now }) ?? true {
            complain("watching \(watched.keys.sorted().joined(separator: ", "))")
        }
        try follower.run { interruption.isRequested || Terminal.isOutputGone }
        if until != nil, interruption.isRequested { throw ExitCode(ExitStatus.interrupted.rawValue) }
    }

    private func choose(from reached: KafkaAccess.Reached, _ kafka: KafkaAccess) throws -> [String: Int] {
        let own = TopicChoice(topics: deployment.topics, patterns: topic, isEverybodys: allPrefixes)
        let watched = reached.topics.filter { own.contains($0.key) }
        let hidden = try hidden(own, reached)
        if !hidden.isEmpty {
            var problem = kafka.noRight(to: "see", "Read", hidden)
            problem.advice.append("Whether a topic is there, Kafka tells only those who may see it.")
            if watched.isEmpty { throw problem }
            complain(problem.what.harmless)
        }
        if !watched.isEmpty { return watched }
        let all = TopicChoice(topics: deployment.topics, patterns: topic, isEverybodys: true)
        let others = reached.topics.keys.filter { all.contains($0) }.count
        throw Problem(
            .refused,
            "no topic of this deployment matches \(own.shownPatterns) at \(kafka.configuration.bootstrapServers).",
            others == 0
                ? "Services make their topics when they start. Or they are there and hidden: Kafka shows a topic only to "
                    + "users with a right to it (READ, or DESCRIBE)."
                : "\(others) of other deployments match: set TOPIC_PREFIX to theirs, or give --all-prefixes.")
    }

    /// The deployment's topics that are meant and that Kafka hides from us: from its list they are missing, but it says so
    /// of a name. Whether they are there it does not say.
    private func hidden(_ own: TopicChoice, _ reached: KafkaAccess.Reached) throws -> [String] {
        let topics = deployment.topics
        let known =
            serviceNames.flatMap { [topics.commands($0), topics.events($0), topics.deadLetters($0)] }
            + [topics.replies] + topic + topic.map { topics.prefix + $0 }
        let missing = Set(known).filter {
            own.contains($0) && reached.topics[$0] == nil && $0.allSatisfy { !"*?[\\".contains($0) }
        }
        // The embedded broker makes what it is asked for, and hides nothing.
        guard !missing.isEmpty, try !reached.admin.isEmbedded(timeout: .seconds(5)) else { return [] }
        try reached.admin.watch(topics: missing)
        return try reached.admin.topicStates(timeout: .seconds(5))
            .filter { $0.value.error?.code == KafkaError.Code.topicAuthorizationFailed }.keys.sorted()
    }

    private func isForged(_ record: KafkaRecord, _ publications: Publications) -> Bool {
        let topic = record.topicPartition.topic
        guard TopicChoice(topics: deployment.topics, patterns: [], isEverybodys: false).contains(topic) else {
            return false
        }
        return !topic.hasSuffix(".dlq.v1") && publications.canCheck(topic) && !publications.isGenuine(record)
    }
}
