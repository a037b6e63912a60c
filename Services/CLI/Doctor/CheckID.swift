// SPDX-License-Identifier: Apache-2.0

import Messaging
import Storage

/// One thing that `identitybus doctor` looks at, by its stable name. docs/command-line.md has the same list.
enum CheckID: String, CaseIterable, Sendable {
    case settings = "config.settings"
    case twice = "config.twice"
    case unknownVariable = "config.unknown-variable"
    case internalKey = "config.internal-key"
    case apps = "config.apps"
    case weakSecret = "config.weak-secret"
    case keyExpiry = "config.key-expiry"
    case gatewayCertificate = "config.certificate"
    case kafkaReachable = "kafka.reachable"
    case kafkaTLS = "kafka.tls"
    case kafkaCertificate = "kafka.certificate"
    case kafkaSignIn = "kafka.sasl"
    case kafkaBrokers = "kafka.brokers"
    case kafkaRights = "kafka.rights"
    case kafkaTopics = "kafka.topics"
    case kafkaLeaders = "kafka.leaders"
    case kafkaRetention = "kafka.retention"
    case kafkaCopies = "kafka.copies"
    case kafkaTime = "kafka.time"
    case kafkaMessageSize = "kafka.message-size"
    case kafkaClock = "kafka.clock"
    case databaseReachable = "postgresql.reachable"
    case databaseTLS = "postgresql.tls"
    case databaseCertificate = "postgresql.certificate"
    case databaseSignIn = "postgresql.sign-in"
    case databaseSession = "postgresql.session"
    case databaseVersion = "postgresql.version"
    case databaseWrites = "postgresql.writes"
    case databaseSchema = "postgresql.schema"
    case databaseRights = "postgresql.rights"
    case databaseRoom = "postgresql.room"
    case databaseClock = "postgresql.clock"
    case fileStore = "sqlite.store"
    case fileSchema = "sqlite.schema"
    case fileRoom = "sqlite.room"

    /// The part of the report that it stands in.
    enum Section: String, CaseIterable, Sendable {
        case configuration = "Configuration"
        case kafka = "Kafka"
        case postgresql = "PostgreSQL"
        case sqlite = "SQLite"

        var checks: [CheckID] { CheckID.allCases.filter { $0.section == self } }
    }

    var section: Section {
        switch rawValue.prefix(while: { $0 != "." }) {
        case "kafka": .kafka
        case "postgresql": .postgresql
        case "sqlite": .sqlite
        default: .configuration
        }
    }

    /// In the report, which is for people.
    var title: String {
        switch self {
        case .settings: "settings"
        case .twice: "reserved by two"
        case .unknownVariable: "unknown variable"
        case .internalKey: "internal key"
        case .apps: "apps file"
        case .weakSecret: "secrets"
        case .keyExpiry: "key ends"
        case .kafkaReachable, .databaseReachable: "reachable"
        case .kafkaTLS, .databaseTLS: "TLS"
        case .gatewayCertificate, .kafkaCertificate, .databaseCertificate: "certificate"
        case .kafkaSignIn, .databaseSignIn: "sign in"
        case .databaseSession: "session"
        case .kafkaBrokers: "brokers"
        case .kafkaRights, .databaseRights: "rights"
        case .kafkaTopics: "topics"
        case .kafkaLeaders: "leaders"
        case .kafkaRetention: "retention"
        case .kafkaCopies: "copies"
        case .kafkaTime: "time"
        case .kafkaMessageSize: "message size"
        case .kafkaClock, .databaseClock: "clock"
        case .databaseVersion: "version"
        case .databaseWrites: "writes"
        case .databaseSchema, .fileSchema: "schema"
        case .databaseRoom, .fileRoom: "room"
        case .fileStore: "store"
        }
    }

    /// When it fails, or is not as it should be.
    var meaning: String {
        switch self {
        case .settings: "a setting is missing, or has a value that stops the start"
        case .twice: "a variable and its _FILE are both set"
        case .unknownVariable: "a variable is set that looks like a setting, and nothing reads it"
        case .internalKey: "the internal key has fewer than 32 bytes"
        case .apps: "the apps file cannot be read, or would be refused; or has what should not stay so"
        case .weakSecret: "a secret of the apps file is short, or one of a demo"
        case .keyExpiry: "an API key ends within 14 days"
        case .gatewayCertificate: "the gateway's certificate ends within 14 days, or has ended"
        case .kafkaReachable:
            "no broker answers, or one of several does not: its name, its port, no answer, or it is no Kafka"
        case .kafkaTLS: "the port speaks TLS and we do not, or the other way"
        case .kafkaCertificate: "the broker's certificate, or ours, is refused, or ends within 14 days"
        case .kafkaSignIn:
            "the SASL mechanism, the user name, the password or the token is refused or missing, or librdkafka is too old for tokens that change"
        case .kafkaBrokers: "a broker of the cluster cannot be reached at the address that it tells"
        case .kafkaRights: "a topic may not be seen, read or written, or a group not be joined"
        case .kafkaTopics: "a topic is missing, or has another number of partitions"
        case .kafkaLeaders: "a partition has no leader: nobody can write to it or read from it"
        case .kafkaRetention: "a topic forgets before the inbox does, by time or by size, or is compacted"
        case .kafkaCopies: "a topic takes what only one broker of three has (min.insync.replicas)"
        case .kafkaTime: "the times of a topic's records are the producers', not the broker's"
        case .kafkaMessageSize: "a topic takes only smaller messages than services send"
        case .kafkaClock: "the newest record is of a time to come: the broker's clock or ours is wrong"
        case .databaseReachable:
            "no server answers: its name, its port, no answer, or it is no PostgreSQL; or a parameter is refused"
        case .databaseTLS: "the server speaks no TLS and sslmode asks for it, or the other way"
        case .databaseCertificate: "the server's certificate, or ours, is refused, or ends within 14 days"
        case .databaseSignIn:
            "the user, the password or the name of the database is refused, or this user may not sign in"
        case .databaseSession: "a connection pooler in transaction mode is in between"
        case .databaseVersion: "the server is older than PostgreSQL 15"
        case .databaseWrites: "it takes no writes: read-only, the disk is full, or somebody keeps a lock"
        case .databaseSchema:
            "the schema, a table or a column is missing, older or newer than this code, or of another version"
        case .databaseRights: "the role lacks SELECT, INSERT, UPDATE, DELETE or TRUNCATE on a table"
        case .databaseRoom: "fewer connections are free for this role than the services take"
        case .databaseClock: "the server's clock and ours differ by more than a second"
        case .fileStore: "the folder or a file cannot be read or written"
        case .fileSchema:
            "the store, a table or a column is missing, older or newer than this code, or of another version"
        case .fileRoom: "the disk is nearly full"
        }
    }

    /// Why it can fail or warn, by stable names; empty where there is one reason. docs/command-line.md has the same.
    var causes: [String] {
        switch self {
        case .kafkaReachable, .kafkaTLS, .kafkaCertificate, .kafkaSignIn:
            BrokerFailure.Cause.allCases.filter { $0.check == self }.map(\.rawValue)
        case .kafkaBrokers: BrokerFailure.Cause.allCases.map(\.rawValue)
        case .kafkaRights: ["no-right", "no-answer"]
        case .kafkaTopics: ["missing", "partitions", "no-answer"]
        case .kafkaRetention, .kafkaCopies, .kafkaTime, .kafkaMessageSize: TopicFindings.settings[self] ?? []
        case .databaseCertificate: ofPostgreSQL + ["certificate-expired", "unknown-ca"]
        case .databaseReachable, .databaseTLS, .databaseSignIn, .databaseSession: ofPostgreSQL
        case .databaseWrites: ofPostgreSQL + ["lock", "disk-full"]
        case .databaseSchema: ["missing", "table-missing", "older", "other-version", "unreadable", "no-answer"]
        case .databaseRights: ["no-right"]
        case .databaseRoom: ofPostgreSQL + ["server-limit", "database-limit", "role-limit"]
        case .fileSchema: ["missing", "table-missing", "older", "other-version", "unreadable"]
        case .settings, .twice, .unknownVariable, .internalKey, .apps, .weakSecret, .keyExpiry,
            .gatewayCertificate, .kafkaLeaders, .kafkaClock, .databaseVersion, .databaseClock, .fileRoom:
            []
        case .fileStore: ["timed-out"]
        }
    }

    private var ofPostgreSQL: [String] { PostgreSQLCause.allCases.filter { $0.check == self }.map(\.rawValue) }
}
