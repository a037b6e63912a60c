// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Messaging
import Runtime
import Storage
import Supervision
import Testing
import WireJSON

@testable import CLI

/// What the doctor says of what it has found. What it finds is tried end to end, in test_doctor.py.
@Suite struct DoctorTests {
    // MARK: The report

    private static let findings: [Finding] = [
        .ok(.settings, "31 variables read"),
        .fail(
            .kafkaSignIn, "it refuses the password\nof \u{1B}[2Jus", fix: "Set another one.", cause: "wrong-credentials"
        ),
        .skip(.kafkaRights, needs: "the broker"), .skip(.kafkaTopics, needs: "the broker"),
        .warn(.databaseRoom, "connections 96 of 97"),
        Finding(id: .databaseClock, level: .skip, message: "there is none"),
    ]

    @Test func aLineForEachFindingAndAdviceBelowIt() throws {
        let report = DoctorReport(heads: [.kafka: "b-1:9096   SASL_SSL"], findings: Self.findings)
        let now = try #require(Timestamp(rfc3339: "2030-01-31T12:00:00.5Z"))
        #expect(
            report.lines(version: "IdentityBus 1", now: now) == [
                "IdentityBus 1   2030-01-31 12:00:00Z", "Configuration", "  ok    settings          31 variables read",
                "Kafka   b-1:9096   SASL_SSL",
                "  FAIL  sign in           it refuses the password\\nof \\u001b[2Jus",
                "                          Set another one.", "  skip  rights, topics    needs the broker",
                "PostgreSQL",
                "  warn  room              connections 96 of 97", "  skip  clock             there is none",
                "1 ok, 1 failed, 1 warning, 3 skipped",
            ])
    }

    @Test func coloursAreAroundTheLevelAlone() {
        let report = DoctorReport(findings: [Self.findings[1]], isColoured: true)
        let line = report.lines(version: "x", now: .now)[2]
        #expect(line.hasPrefix("  \u{1B}[31mFAIL\u{1B}[0m  sign in           it refuses"))
    }

    @Test func aLineOfJSONHasTheSameMembersForAll() throws {
        for finding in Self.findings {
            let value = try JSONValue(parsing: Array(finding.json.utf8))
            #expect(
                value["id"]?.stringValue == finding.id.rawValue && value["level"]?.stringValue == finding.level.rawValue
            )
            #expect(value["message"]?.stringValue == finding.message && value["ms"] != nil && value["fix"] != nil)
            #expect(value["cause"]?.stringValue == finding.cause && value["subject"]?.stringValue == finding.subject)
            #expect(!finding.json.contains("\n"))
        }
    }

    @Test func namesOfChecksAreInTheirSection() {
        for check in CheckID.allCases {
            #expect(check.rawValue.contains(/^(config|kafka|postgresql|sqlite)\.[a-z]+(-[a-z]+)*$/), "\(check)")
            #expect(check.section.checks.contains(check) && check.title.count < 17 && !check.meaning.isEmpty)
        }
        #expect(Set(CheckID.allCases.map { "\($0.section) \($0.title)" }).count == CheckID.allCases.count)
    }

    @Test func whatDependsOnWhatFailsIsSkipped() {
        let found: [Finding] = [.ok(.kafkaReachable, "x"), .fail(.kafkaTLS, "y")]
        let all = found.skippingRest(of: .kafka, needs: "the broker", but: [.kafkaSignIn])
        #expect(all.count == CheckID.Section.kafka.checks.count - 1 && all.prefix(2) == found[...])
        #expect(all.dropFirst(2).allSatisfy { $0.level == .skip && $0.message == "needs the broker" })
    }

    // MARK: Kafka

    @Test func everyCauseIsOneCheck() {
        let checks = Dictionary(grouping: BrokerFailure.Cause.allCases, by: \.check)
        #expect(Set(checks.keys) == Set(CheckID.firstOfKafka))
        #expect(checks[.kafkaTLS] == [.plainToTLS, .tlsToPlain, .handshakeEnded])
        #expect(
            checks[.kafkaCertificate]
                == [.unknownAuthority, .wrongHostName, .certificateOver, .certificateRefused, .clientCertificate])
    }

    private func survey(
        _ state: TopicState, _ settings: [String: String] = [:], brokers: Int = 3
    ) throws -> TopicSurvey.Finding {
        let topics = DeploymentTopics(try TopicPlan(EnvironmentSettings(["TOPIC_PARTITIONS": "4"])))
        let commands = try #require(topics.all.first { $0.spec.name == "identity.link.commands.v1" })
        return TopicSurvey.Finding(commands, state, settings: settings, refusal: nil, brokers: brokers)
    }

    private static let sound = [
        "retention.ms": "1209600000", "message.timestamp.type": "LogAppendTime", "max.message.bytes": "2000000",
        "min.insync.replicas": "2", "cleanup.policy": "delete",
    ]

    @Test func whatATopicPromisesIsOneCheckEach() throws {
        let state = TopicState(partitions: 4, replicas: 3)
        let sound = TopicFindings([try survey(state, Self.sound)]).all
        #expect(sound.map(\.level) == [.ok, .ok, .ok, .ok])
        #expect(sound[0].message == "what services read is kept for the 14 d that is wanted, or longer")
        for (setting, value, check) in [
            ("retention.ms", "3600000", CheckID.kafkaRetention), ("cleanup.policy", "compact", .kafkaRetention),
            ("retention.bytes", "1000000", .kafkaRetention), ("min.insync.replicas", "1", .kafkaCopies),
            ("message.timestamp.type", "CreateTime", .kafkaTime),
            ("max.message.bytes", "1000", .kafkaMessageSize),
        ] {
            var settings = Self.sound
            settings[setting] = value
            let failed = TopicFindings([try survey(state, settings)]).all.filter { $0.level == .fail }
            #expect(failed.map(\.id) == [check] && failed.first?.cause == setting, "\(setting)")
            #expect(failed.first?.fix.first?.contains("--entity-name identity.link.commands.v1") == true)
        }
        let fewer = TopicFindings([try survey(TopicState(partitions: 4, replicas: 1), Self.sound)]).all
        #expect(fewer.filter { $0.level != .ok }.map(\.level) == [.warn])
        #expect(TopicFindings([try survey(state)]).all.map(\.level) == [.skip, .ok, .skip, .skip])
    }

    @Test func aPartitionWithoutALeaderIsNamed() throws {
        let found = ClusterExamination.leaders([try survey(TopicState(partitions: 4, leaderless: [1, 3], replicas: 3))])
        #expect(found.map(\.level) == [.fail] && found[0].message.hasPrefix("identity.link.commands.v1: "))
        #expect(found[0].message.contains("1, 3"))
        #expect(ClusterExamination.leaders([try survey(TopicState(partitions: 4, replicas: 3))])[0].level == .ok)
    }

    @Test func rightsThatAreMissingAreGivenByTheLinesBelow() {
        var found = RightsFound(denied: [KafkaRight(.group, "identity.link", .read), KafkaRight(.topic, "t", .write)])
        found.add(
            RightsFound(denied: [KafkaRight(.topic, "t", .read), KafkaRight(.topic, "t", .write)], silent: ["u"]))
        let findings = found.findings([("read", 3), ("write", 2), ("groups", 2)], user: "ib-link", roles: ["link"])
        #expect(findings.map(\.level) == [.fail, .warn])
        #expect(
            findings[0].message
                == "Kafka user ib-link lacks Read on the topic t; Write on the topic t; Read on the group identity.link"
        )
        #expect(
            findings[0].fix.count == 2 && findings[0].fix[0].contains("--operation Read --operation Write --topic t"))
        #expect(
            RightsFound().findings([("read", 3), ("groups", 2)], user: nil, roles: [])[0].message
                == "5 of 5 (read 3, groups 2)")
    }

    @Test func manyGrantsAreSaidByALineThatWorks() {
        let denied = (0..<6).map { KafkaRight(.topic, "t\($0)", .write) }
        let found = RightsFound(denied: denied).findings([("write", 6)], user: "me", roles: ["link", "gateway"])
        #expect(
            found[0].fix.last == "and more: identitybus topics --acls --principal link=User:me,gateway=User:me")
    }

    @Test func differentNumbersAreSaidAsSuch() {
        #expect(ClusterExamination.counts([12, 12]) == "12")
        #expect(ClusterExamination.counts([12, 1]) == "1 or 12")
        #expect(ClusterExamination.counts([3, 1, 2, 1]) == "1, 2 or 3" && ClusterExamination.counts([]) == "")
    }

    @Test func aClockIsWrongBothWays() {
        #expect(ClusterExamination.clock(latest: 1000, now: 600_000).level == .ok)
        #expect(ClusterExamination.clock(latest: 603_000, now: 600_000).level == .warn)
        #expect(
            ClusterExamination.clock(latest: 612_340, now: 600_000).message
                == "the broker is at least 12.3 s ahead of us")
        for (ahead, level) in [
            (0, Finding.Level.ok), (-900, .ok), (4000, .warn), (-4000, .warn), (60_000, .fail), (-6000, .fail),
        ] {
            #expect(PostgreSQLExamination.clock(Int64(ahead)).level == level, "\(ahead)")
        }
        #expect(PostgreSQLExamination.clock(-6000).message == "the server is 6.0 s behind us")
        // What is shown as nothing is none.
        #expect(PostgreSQLExamination.clock(40).message == "as ours")
        #expect(PostgreSQLExamination.clock(60).message == "0.1 s off")
    }

    // MARK: Causes

    @Test func everyFailureOfPostgreSQLIsOneCheck() {
        for cause in PostgreSQLCause.allCases {
            #expect(cause.check.section == .postgresql && cause.check.causes.contains(cause.rawValue), "\(cause)")
        }
        for cause in BrokerFailure.Cause.allCases {
            #expect(cause.check.causes.contains(cause.rawValue) && CheckID.kafkaBrokers.causes.contains(cause.rawValue))
        }
        for check in CheckID.allCases {
            #expect(
                Set(check.causes).count == check.causes.count && check.causes.allSatisfy { !$0.isEmpty }, "\(check)")
        }
    }

    @Test func theSmallestRoomCounts() {
        typealias Limit = ConnectionRoom.Limit
        let server = Limit(cause: "server-limit", most: 97, open: 7)
        func look(_ more: Limit..., wanted: Int) -> Finding {
            ConnectionRoom(role: "ib_link", database: "d", limits: [server] + more)
                .finding(wanted: wanted, of: "the link service with LOOPS=2")
        }
        #expect(look(wanted: 90).level == .ok && look(wanted: 91).cause == "server-limit")
        #expect(
            look(wanted: 2).message
                == "90 of 97 connections of the server are free; wanted by the link service with LOOPS=2: 2 more")
        let role = look(Limit(cause: "role-limit", most: 3, open: 2), wanted: 2)
        #expect(role.level == .warn && role.cause == "role-limit")
        #expect(role.message.hasPrefix("1 of 3 connections of role ib_link are free"))
        let database = look(Limit(cause: "database-limit", most: 5, open: 9), wanted: 1)
        #expect(database.level == .warn && database.cause == "database-limit" && database.message.hasPrefix("0 of 5"))
        // Who runs has its own already.
        #expect(look(Limit(cause: "role-limit", most: 2, open: 2), wanted: 0).level == .ok)
    }

    // MARK: Who looks

    @Test func withoutTheInternalKeyItIsTheGateway() {
        #expect(Role.allValueStrings == ["link", "user", "sync", "verification", "gateway"])
        #expect(Role.all(servedBy: ["IDENTITYBUS_GATEWAY_KEYS": "x"]) == [.gateway])
        #expect(Role.all(servedBy: ["IDENTITYBUS_GATEWAY_KEYS": "x", "IDENTITYBUS_INTERNAL_KEY_FILE": "y"]).count == 5)
        #expect(Role.all(servedBy: [:]).count == 5 && Role(argument: "nobody") == nil)
    }

    @Test func eachLooksAtItsOwn() throws {
        let environment = ["KAFKA_BOOTSTRAP_SERVERS": "b:9092", "IDENTITYBUS_TRUST": "cluster"]
        let configuration = try ServiceConfiguration(environment: environment, service: "link")
        let link = try #require(Role(argument: "link"))
        let needs = KafkaNeeds(configuration, apps: nil, roles: [link])
        #expect(needs.contains("identity.link.commands.v1") && !needs.contains("identity.link.nothing"))
        #expect(!needs.contains("identity.verification.commands.v1") && needs.contains("identity.replies.demo"))
        #expect(needs.groups.contains("identity.link"))
        #expect(
            needs.topics(to: .write, among: ["identity.link.events.v1", "identity.user.events.v1"]) == [
                "identity.link.events.v1"
            ])
        #expect(KafkaNeeds(configuration, apps: nil, roles: [.gateway]).groups.isEmpty)
    }
}
