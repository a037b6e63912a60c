// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation
import Messaging
import Runtime
import Supervision
import WireJSON

struct TopicsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topics",
        abstract: "Compares the deployment's topics with what is wanted of them, makes the missing, writes them out.",
        discussion: """
            What is wanted follows from the settings (TOPIC_PREFIX, TOPIC_PARTITIONS, TOPIC_REPLICATION_FACTOR, \
            JOURNAL_RETENTION_HOURS, DEAD_LETTER_RETENTION_HOURS) and the apps file: give both as the services have \
            them. --format and --acls write it for others to carry out, and need no Kafka.

              identitybus topics
              identitybus topics --create
              identitybus topics --format terraform >topics.tf.json
              identitybus topics --acls --principal link=User:a,gateway=User:b >acls.sh

            Exit status 3: a topic is missing, weak, without a leader, or hidden from this Kafka user.
            """)

    @Flag(help: "Make the topics that are missing. None is changed.")
    var create = false

    @Flag(
        help: """
            Print what Kafka has to allow whom, a line of kafka-acls for each thing. With TOPIC_CREATE=never nobody needs \
            the right to create topics.
            """)
    var acls = false

    @Option(
        help: ArgumentHelp(
            """
            For --acls: the Kafka users of link, user, sync, verification, gateway, and of the operator who uses \
            identitybus. Whoever is left out gets no line.
            """, valueName: "who=User:name,…"))
    var principal: [String] = []

    @Option(help: "Print all topics in this form.")
    var format: TopicFormat?

    @Option(
        help: ArgumentHelp("For --format strimzi: the name of the Kafka resource. Default: kafka.", valueName: "name"))
    var cluster: String?

    @Flag(help: "Print each topic, or each right, as one JSON line.")
    var json = false

    @OptionGroup var deployment: Deployment

    func validate() throws {
        let modes = [("--create", create), ("--acls", acls), ("--format", format != nil)].filter(\.1).map(\.0)
        if modes.count > 1 { throw ValidationError("\(modes.joined(separator: " and ")): give one of them") }
        if cluster != nil, format != .strimzi { throw ValidationError("--cluster is for --format strimzi") }
        if json, format != nil { throw ValidationError("--json and --format: give one of them") }
        if acls == principal.isEmpty {
            throw ValidationError(
                acls
                    ? "--acls needs to know the Kafka users: --principal link=User:ib-link,gateway=User:ib-gateway"
                    : "--principal is for --acls")
        }
    }

    func run() throws {
        let topics = DeploymentTopics(
            try TopicPlan(EnvironmentSettings(ProcessInfo.processInfo.environment)), apps: try deployment.appDirectory()
        )
        if acls { return try tellRights(topics) }
        if let format { return write(topics, format) }
        let kafka = try deployment.kafka()
        let reached = try kafka.reach()
        defer { reached.admin.close(timeout: .seconds(1)) }
        do {
            var survey = try TopicSurvey(of: topics, reached)
            var created: Set<String> = []
            if create {
                created = try make(survey.specs(.missing), survey, reached, kafka)
                if !created.isEmpty { survey = try TopicSurvey(of: topics, reached) }
            }
            tell(survey, created)
            if survey.findings.contains(where: { $0.verdict != .ok }) { throw ExitCode(ExitStatus.refused.rawValue) }
        } catch let error as KafkaError {
            throw kafka.problem(error)
        }
    }

    // MARK: Making

    private func make(
        _ specs: [TopicSpec], _ survey: TopicSurvey, _ reached: KafkaAccess.Reached, _ kafka: KafkaAccess
    ) throws -> Set<String> {
        let unseen = survey.findings.filter { $0.verdict == .hidden && !$0.state.exists }.map(\.topic.spec.name)
        // They may be missing.
        if !unseen.isEmpty { throw kafka.noRight(to: "see", "Describe", unseen) }
        if specs.isEmpty { return [] }
        if survey.isEmbedded {
            throw Problem(
                .refused, "the embedded broker makes no topics on demand.", "Services get theirs by using them.")
        }
        do {
            try reached.admin.ensureTopics(specs, timeout: .seconds(30))
        } catch {
            var problem = kafka.problem(error)
            if [KafkaError.Code.topicAuthorizationFailed, KafkaError.Code.clusterAuthorizationFailed].contains(
                error.code)
            {
                problem.status = .noRight
                problem.advice = ["Be a user who may create topics (Create on the cluster, or on the topics)."]
            }
            throw problem
        }
        if !json { for spec in specs { complain("created   \(spec.name)") } }
        return Set(specs.map(\.name))
    }

    // MARK: Telling

    private func tell(_ survey: TopicSurvey, _ created: Set<String>) {
        if json {
            for finding in survey.findings { say(finding.json(isCreated: created.contains(finding.topic.spec.name))) }
            return
        }
        for line in TopicTable(survey.findings).lines { say(line) }
        say(Self.summary(survey))
    }

    private static func summary(_ survey: TopicSurvey) -> String {
        let counts = [
            (survey.count(.missing), "missing"), (survey.count(.weak), "weak"),
            (survey.count(.leaderless), "without a leader"), (survey.count(.hidden), "hidden"),
        ].filter { $0.0 > 0 }
        if counts.isEmpty {
            return survey.isEmbedded
                ? "\(survey.findings.count) topics, all there. The embedded broker does not tell their settings."
                : "\(survey.findings.count) topics, all as they should be."
        }
        let words = counts.map { "\($0.0) \($0.1)" }.joined(separator: ", ") + "."
        if survey.count(.missing) == 0 || survey.isEmbedded { return words }
        return "\(words)   identitybus topics --create    makes the missing, changes none"
    }

    private func write(_ topics: DeploymentTopics, _ format: TopicFormat) {
        let writer = TopicWriter(topics, cluster: cluster ?? "kafka")
        say(writer.text(format))
        if topics.plan.replicationFactor < 0 {
            complain("copies    \(writer.copies), since TOPIC_REPLICATION_FACTOR does not say how many")
        }
    }

    private func tellRights(_ topics: DeploymentTopics) throws {
        let principals = try Principals(principal, among: topics.members)
        if !json {
            say("# B is the address of a broker. The program may be called kafka-acls.sh; it takes --command-config.")
        }
        for (member, user) in principals.all {
            let grants = KafkaGrant.all(topics.rights(of: member))
            if json { grants.forEach { say($0.json(member, user)) } } else { grants.forEach { say($0.shell(user)) } }
        }
        if !json {
            say("# Kafka before 2.8 also wants, of each but the operator: --operation IdempotentWrite --cluster")
        }
    }
}
