// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Logging
import Messaging
import Observability
import Testing

@testable import Runtime

@Suite struct ServiceConfigurationTests {
    private static let least = [
        "KAFKA_BOOTSTRAP_SERVERS": "localhost:9092", "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef",
    ]

    private func read(_ changes: [String: String?] = [:]) throws -> ServiceConfiguration {
        var environment = Self.least
        for (name, value) in changes { environment[name] = value }
        return try ServiceConfiguration(environment: environment, service: "fake")
    }

    @Test func defaults() throws {
        let configuration = try read()
        #expect(configuration.kafka.bootstrapServers == "localhost:9092")
        #expect(configuration.kafka.clientID == "identity.fake")
        #expect(configuration.topics.prefix == "")
        #expect(configuration.topicPlan.partitions == 12)
        #expect(configuration.topicPlan.replicationFactor == -1)
        #expect(configuration.database.description == "SQLite in .identitybus")
        #expect(configuration.appsPath == "config/apps.yaml")
        #expect(configuration.trust == .signed)
        #expect(configuration.keys.internalKeys == [SymmetricKey(data: Array("0123456789abcdef".utf8))])
        #expect(configuration.batchSize == 1000)
        #expect(configuration.loops == 1)
        #expect(configuration.journalRetention == .seconds(336 * 3600))
        #expect(configuration.drainTimeout == .seconds(10))
        #expect(configuration.httpHost == "127.0.0.1")
        #expect(configuration.httpPort == 0)
        #expect(configuration.logLevel == .info)
        #expect(configuration.logFormat == .json)
        #expect(!configuration.owner.isEmpty)
    }

    @Test func theEndOfThePastIsNotInTheFuture() throws {
        #expect(try read().replayUntil == nil)
        #expect(try !read().kafka.reportsEnds)
        let past = try read(["REPLAY_UNTIL": "2026-01-31T12:00:00Z"])
        #expect(past.replayUntil == Timestamp(rfc3339: "2026-01-31T12:00:00Z"))
        #expect(past.kafka.reportsEnds)
        for wrong in ["yesterday", "2026-01-31", "3026-01-31T12:00:00Z"] {
            #expect(throws: ConfigurationProblem.self) { try read(["REPLAY_UNTIL": wrong]) }
        }
    }

    @Test func loopsHaveNamesOfTheirOwn() throws {
        let one = try read(["DATABASE_URL": "postgresql://localhost/x"])
        let alone = try one.ofEachLoop()
        #expect(alone.map(\.kafka.clientID) == ["identity.fake"])
        let two = try read(["DATABASE_URL": "postgresql://localhost/x", "LOOPS": "2"])
        let both = try two.ofEachLoop()
        #expect(both.map(\.kafka.clientID) == ["identity.fake-1", "identity.fake-2"])
        #expect(Set(both.map(\.owner)).count == 2)
        #expect(both.allSatisfy { $0.kafka.groupInstance == nil })
        let named = try read([
            "DATABASE_URL": "postgresql://localhost/x", "LOOPS": "2", KafkaConfiguration.instanceVariable: "a",
        ])
        let ofOneName = try named.ofEachLoop()
        #expect(ofOneName.map(\.kafka.groupInstance) == ["a-1", "a-2"])
    }

    @Test func oneSQLiteFileTakesOneLoop() throws {
        let configuration = try read(["LOOPS": "2"])
        #expect(throws: ConfigurationProblem.self) { try configuration.ofEachLoop() }
    }

    @Test func emptyCountsAsAbsent() throws {
        let empty: [String: String?] = [
            "TOPIC_PREFIX": "", "TOPIC_PARTITIONS": "", "DATABASE_URL": "", "DATA_DIR": "", "IDENTITYBUS_APPS": "",
            "IDENTITYBUS_TRUST": "", "BATCH_SIZE": "", "HTTP_PORT": "", "HTTP_HOST": "", "LOG_LEVEL": "",
            "LOG_FORMAT": "", "DATABASE_URL_FILE": "", "IDENTITYBUS_INTERNAL_KEY_FILE": "", "SQLITE_SYNCHRONOUS": "",
        ]
        let configuration = try read(empty)
        #expect(configuration.topicPlan.partitions == 12)
        #expect(configuration.database.description == "SQLite in .identitybus")
    }

    @Test func settings() throws {
        let configuration = try read([
            "TOPIC_PREFIX": "run-1_x.", "TOPIC_PARTITIONS": "3", "TOPIC_REPLICATION_FACTOR": "2", "DATA_DIR": "/data",
            "IDENTITYBUS_APPS": "/apps.yaml", "IDENTITYBUS_TRUST": "cluster", "BATCH_SIZE": "1",
            "JOURNAL_RETENTION_HOURS": "1", "DRAIN_TIMEOUT_SECONDS": "0", "HTTP_HOST": "0.0.0.0", "HTTP_PORT": "8080",
            "LOG_LEVEL": "DEBUG", "LOG_FORMAT": "text", "KAFKA_CLIENT_ID": "me", "SQLITE_SYNCHRONOUS": "NORMAL",
        ])
        #expect(configuration.topics.commands("fake") == "run-1_x.identity.fake.commands.v1")
        #expect(configuration.topicPlan.partitions == 3)
        #expect(configuration.topicPlan.replicationFactor == 2)
        #expect(configuration.database.description == "SQLite in /data")
        #expect(configuration.appsPath == "/apps.yaml")
        #expect(configuration.trust == .cluster)
        #expect(configuration.batchSize == 1)
        #expect(configuration.journalRetention == .seconds(3600))
        #expect(configuration.drainTimeout == .zero)
        #expect(configuration.httpHost == "0.0.0.0")
        #expect(configuration.httpPort == 8080)
        #expect(configuration.logLevel == .debug)
        #expect(configuration.logFormat == .text)
        #expect(configuration.kafka.clientID == "me")
    }

    @Test(arguments: [
        ("TOPIC_PARTITIONS", 1, 1000), ("TOPIC_REPLICATION_FACTOR", -1, 100), ("BATCH_SIZE", 1, 10_000),
        ("JOURNAL_RETENTION_HOURS", 1, 87_600), ("DEAD_LETTER_RETENTION_HOURS", 1, 87_600),
        ("DRAIN_TIMEOUT_SECONDS", 0, 600), ("HTTP_PORT", 0, 65_535),
    ]) func ranges(_ variable: String, _ least: Int, _ most: Int) throws {
        #expect(throws: Never.self) { try read([variable: String(least)]) }
        #expect(throws: Never.self) { try read([variable: String(most)]) }
        for text in [String(least - 1), String(most + 1), "x", "1.0", " 1", "1e2", "99999999999999999999"] {
            let problem = try #require(throws: ConfigurationProblem.self) { try read([variable: text]) }
            #expect(problem.variable == variable)
            #expect(problem.description.contains("\(least) to \(most)"))
        }
    }

    @Test(arguments: [
        ("IDENTITYBUS_TRUST", "none", "signed"), ("LOG_LEVEL", "loud", "warning"), ("LOG_FORMAT", "xml", "json"),
        ("SQLITE_SYNCHRONOUS", "off", "normal"), ("TOPIC_PREFIX", "a b", "A-Z"), ("TOPIC_PREFIX", "\u{e9}", "A-Z"),
        ("TOPIC_PREFIX", String(repeating: "x", count: 101), "100"),
        ("DATABASE_URL", "mysql://user:hunter2@host/db", "postgresql://"), ("DATABASE_URL", "hunter2", "postgresql://"),
        ("DATABASE_URL", "postgresql://u:hunter2%zz@h/x", "a % that no two"),
        ("DATABASE_URL", "postgresql://u:hunter2@h/x?nosuch=1", "not known: nosuch"),
        ("DATABASE_URL", "postgresql://u:hunter2/x@h/x", "written %40 and %2F"),
        ("DATABASE_URL", "postgresql://u:p@hunter2@h/x", "written %40 and %2F"),
        ("DATABASE_URL", "postgresql://u:1234/hunter2@h/x", "written %40 and %2F"),
        ("DATABASE_URL", "postgresql://u:p?@hunter2@h/x", "written %40 and %2F"),
        ("DATABASE_URL", "postgresql://u:p?a@b/hunter2@h/x", "written %40 and %2F"),
        ("DATABASE_URL", "postgresql://u:p@hunter2?application_name=x@h/x", "written %40 and %2F"),
        ("DATABASE_URL", "postgresql://u:p?@hunter2%40h/x", "written %40 and %2F"),
        ("DATABASE_URL", "postgresql://h/x?password=abc&hunter2", "not known or has no value"),
        ("DATABASE_URL", "postgresql://u:hunter2@h/x?sslmode", "has no value: sslmode"),
        ("DATABASE_URL", "postgresql://u:hunter2@h:5999999/x", "no number from 1 to 65535"),
        ("DATABASE_URL", "postgresql://u:hunter2@a:1,b:0/x", "no number from 1 to 65535"),
        ("DATABASE_URL", "postgresql://u:hunter2@a,b/x?port=1,2,3", "3 ports for 2 hosts"),
        ("DATABASE_URL", "postgresql://u:hunter2@h/x?sslmode=nonsense", "verify-full"),
        ("DATABASE_URL", "postgresql://u:hunter2@h/x?target_session_attrs=x", "read-write"),
        ("DATABASE_URL", "postgresql://u:hunter2@h/x?channel_binding=x", "disable, prefer, require"),
        ("DATABASE_URL", "postgresql://u:hunter2@h/x?connect_timeout=soon", "connect_timeout that is no whole number"),
        ("DATABASE_URL", "postgresql://u:hunter2@[::1/x", "cannot be parsed"),
        ("IDENTITYBUS_INTERNAL_KEY", "hunter2", "16 bytes"),
        ("KAFKA_CONSUMER_ENABLE_AUTO_COMMIT", "true", "enable.auto.commit"),
    ]) func mistakesAreNamed(_ variable: String, _ value: String, _ hint: String) throws {
        let error = try #require(throws: (any Error).self) { try read([variable: value]) }
        let text = "\(error)"
        #expect(text.contains(variable))
        #expect(text.contains(hint))
        #expect(!text.contains("hunter2"))
        #expect(!text.contains("\n"))
        #expect(error is ConfigurationProblem || error is KafkaConfigurationError)
    }

    @Test(arguments: [
        ("postgresql://u@h/x", "h:5432"), ("postgres://h:1", "h:1"), ("postgresql://a:1,b/x", "a:1,b:5432"),
        ("postgresql://a,b:2/x?sslmode=verify-ca&target_session_attrs=primary", "a:5432,b:2"),
        ("postgresql://u:p%25zz@[::1]:7/x", "[::1]:7"), ("postgresql://%2Frun/x", "/run:5432"),
        ("postgresql://a,b/x?port=3", "a:3,b:3"),
    ]) func placesOfDatabases(_ url: String, _ place: String) throws {
        #expect(try read(["DATABASE_URL": url]).database.place == "PostgreSQL at \(place)")
    }

    @Test(arguments: ["1a_", "a\"b", "A", "\u{e9}", String(repeating: "x", count: 41)])
    func schemaPrefixesThatAreNone(_ prefix: String) throws {
        let problem = try #require(throws: ConfigurationProblem.self) {
            try read(["DATABASE_URL": "postgresql://host/db", "DATABASE_SCHEMA_PREFIX": prefix])
        }
        #expect(problem.description.contains("DATABASE_SCHEMA_PREFIX") && problem.description.contains("39 of a-z"))
    }

    @Test func schemaPrefix() throws {
        func schemas(_ more: [String: String]) throws -> String? {
            let database = try read(["DATABASE_URL": "postgresql://host/db"].merging(more) { $1 }).database
            guard case .postgresql(_, let schemas, _) = database else { return nil }
            return schemas
        }
        #expect(try schemas([:]) == "identity_")
        #expect(try schemas(["DATABASE_SCHEMA_PREFIX": "staging_1_"]) == "staging_1_")
    }

    /// 32 bytes are enough; fewer are told.
    @Test func shortInternalKeys() throws {
        let good = ["IDENTITYBUS_INTERNAL_KEY": String(repeating: "k", count: 32)]
        #expect(try read(good).weakInternalKey == nil)
        let short = ["IDENTITYBUS_INTERNAL_KEY": "hunter2hunter2hunter2"]
        let previous = ["IDENTITYBUS_PREVIOUS_INTERNAL_KEYS": "hunter2hunter2hunter2"]
        for settings in [short, good.merging(previous) { _, new in new }] {
            let problem = try #require(try read(settings).weakInternalKey)
            #expect(problem.variable == "IDENTITYBUS_INTERNAL_KEY" && problem.description.contains("32"))
            #expect(!problem.description.contains("hunter2"))
        }
    }

    /// Weak secrets of the apps file are refused unless the operator says otherwise.
    @Test func weakSecrets() throws {
        #expect(try read([:]).weakSecrets == .refuse)
        #expect(try read(["IDENTITYBUS_WEAK_SECRETS": "warn"]).weakSecrets == .warn)
    }

    @Test func whatIsRequired() throws {
        let kafka = try #require(throws: KafkaConfigurationError.self) { try read(["KAFKA_BOOTSTRAP_SERVERS": nil]) }
        #expect(kafka.variable == "KAFKA_BOOTSTRAP_SERVERS")
        let key = try #require(throws: ConfigurationProblem.self) { try read(["IDENTITYBUS_INTERNAL_KEY": nil]) }
        #expect(key.variable == "IDENTITYBUS_INTERNAL_KEY")
        let trusting = try read(["IDENTITYBUS_INTERNAL_KEY": nil, "IDENTITYBUS_TRUST": "cluster"])
        #expect(trusting.keys.isEmpty)
    }

    // MARK: Secrets in files

    @Test(arguments: [
        ("DATABASE_URL", "postgresql://u:hunter2@h/db"), ("IDENTITYBUS_INTERNAL_KEY", "hunter2hunter2hunter2"),
    ])
    func secretsMayStandInFiles(_ variable: String, _ secret: String) throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "identitybus-secret-\(UUID().uuidString)")
            .path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data("\(secret)\r\n\n".utf8).write(to: URL(filePath: path))
        var changes: [String: String?] = ["\(variable)_FILE": path, variable: nil]
        let configuration = try read(changes)
        if variable == "DATABASE_URL" {
            guard case .postgresql(let url, _, _) = configuration.database else {
                Issue.record("not PostgreSQL")
                return
            }
            #expect(url == secret)
            #expect(configuration.database.description == "PostgreSQL")
        } else {
            #expect(configuration.keys.internalKeys == [SymmetricKey(data: Array(secret.utf8))])
        }
        changes[variable] = secret
        let both = try #require(throws: ConfigurationProblem.self) { try read(changes) }
        #expect(both.description.contains("\(variable)_FILE"))
        #expect(!both.description.contains("hunter2"))
        let missing = try #require(throws: ConfigurationProblem.self) {
            try read(["\(variable)_FILE": "/does/not/exist", variable: nil])
        }
        #expect(missing.variable == "\(variable)_FILE")
        // The secret itself in the place of its path.
        let swapped = try #require(throws: ConfigurationProblem.self) {
            try read(["\(variable)_FILE": secret, variable: nil])
        }
        #expect(!swapped.description.contains("hunter2") && swapped.description.contains("Give the path of a file"))
    }

    /// Whatever a URL looks like, its password is in no message.
    @Test(arguments: [
        "postgresql://user:hunter2@", "postgresql://user:hunter2@host:port/db", "postgresql://us er:hunter2@host/db",
        "postgresql://user:hunter2@host/db?nonsense=1", "postgresql://user:hunt%er2hunter2@host/db",
        "postgres://user:hunter2@[::1/db",
    ]) func noPasswordInMessages(_ url: String) throws {
        do {
            let configuration = try read(["DATABASE_URL": url])
            #expect(!"\(configuration.database)".contains("hunter2"))
            _ = try configuration.database.open(service: "fake", logger: Logger(label: "test"))
        } catch {
            #expect(!"\(error)".contains("hunter2"), "\(error)")
        }
    }

    @Test func topicSpecs() throws {
        let plan = try read(["TOPIC_PARTITIONS": "3", "TOPIC_PREFIX": "p."]).topicPlan
        let specs = plan.specs(for: ServiceTraffic("fake"))
        #expect(
            specs.map(\.name) == [
                "p.identity.fake.commands.v1", "p.identity.fake.events.v1", "p.identity.replies.v1",
                "p.identity.fake.dlq.v1", "p.identity.fake.dlq-actions.v1",
                "p.identity.status.v1",
            ])
        #expect(specs.dropLast(2).allSatisfy { $0.partitions == 3 })
        #expect(specs.last?.config["cleanup.policy"] == "compact,delete")
        #expect(specs.suffix(2).allSatisfy { $0.partitions == 1 } && specs.allSatisfy { $0.replicationFactor == -1 })
    }

    /// What is done about a letter outlives it, also where the letter stays until its segment goes.
    @Test func deadLettersAndWhatIsDoneAboutThemAreKept() throws {
        let specs = try read(["DEAD_LETTER_RETENTION_HOURS": "1"]).topicPlan.specs(for: ServiceTraffic("fake"))
        let kept = Dictionary(uniqueKeysWithValues: specs.map { ($0.name, $0.config["retention.ms"]) })
        #expect(kept["identity.fake.dlq.v1"] == "3600000")
        #expect(kept["identity.fake.dlq-actions.v1"] == "\(3_600_000 + 14 * 86_400_000)")
    }

    /// The service reads its own, and writes to those of the services that it asks.
    @Test func topicsOfApps() throws {
        let apps = AppDirectory([
            AppSettings(id: "b", ownCommandsTopics: true), AppSettings(id: "a", replies: "identity.replies.a"),
            AppSettings(id: "c", ownCommandsTopics: true),
        ])
        let plan = try read(["TOPIC_PARTITIONS": "3", "TOPIC_PREFIX": "p."]).topicPlan
        let sources: [InputSource] = [.commands, .events(of: "x"), .replies(from: ["peer"])]
        let topics = plan.appTopics(apps, for: ServiceTraffic("fake", reading: sources))
        let asked = ["p.identity.replies.a", "p.identity.peer.commands.v1.b", "p.identity.peer.commands.v1.c"]
        #expect(topics.specs.map(\.name) == asked + ["p.identity.fake.commands.v1.b", "p.identity.fake.commands.v1.c"])
        #expect(topics.written == Set(asked))
        let own = ["p.identity.fake.commands.v1.b", "p.identity.fake.commands.v1.c"]
        let tellingItself = ServiceTraffic("fake", reading: sources, commandsItself: true)
        #expect(plan.appTopics(apps, for: tellingItself).written == Set(asked + own))
        #expect(plan.written(by: tellingItself).contains("p.identity.fake.commands.v1"))
        let shared = plan.specs(for: ServiceTraffic("fake"))[0]
        #expect(
            topics.specs.last
                == TopicSpec(
                    name: "p.identity.fake.commands.v1.c", partitions: 3, replicationFactor: -1, config: shared.config))
        #expect(plan.appTopics(AppDirectory([]), for: ServiceTraffic("fake", reading: [])) == AppTopics())
    }
}
