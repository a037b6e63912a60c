// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Glibc
package import Messaging
import Observability
import Runtime
import Storage

/// How a command ends, for scripts. docs/command-line.md has the same table.
package enum ExitStatus: Int32, CaseIterable, Sendable {
    case done = 0
    case defect = 1
    case refused = 3
    case unanswered = 4
    case usage = 64
    case away = 69
    case unwritten = 74
    case noRight = 77
    case setting = 78
    case interrupted = 130

    package var meaning: String {
        switch self {
        case .done: "done"
        case .defect: "a defect of IdentityBus: please report it"
        case .refused: "refused, not found, or a check failed"
        case .unanswered: "no answer in time"
        case .usage: "the command line is wrong, or the folder is in use"
        case .away: "Kafka or the database cannot be reached"
        case .unwritten: "the result cannot be written"
        case .noRight: "Kafka, the database or the file system does not allow it"
        case .setting: "a setting or a file is wrong"
        case .interrupted: "Ctrl-C before the end"
        }
    }

    /// For `--help`.
    package static var table: String {
        allCases.map { status in
            let number = "\(status.rawValue)"
            return "  " + String(repeating: " ", count: 3 - number.count) + "\(number)  \(status.meaning)"
        }.joined(separator: "\n")
    }
}

/// Why a command ends without having done what it was asked for: what is wrong and where, then what to do.
package struct Problem: Error, Sendable, CustomStringConvertible {
    package var status: ExitStatus
    package var what: String
    package var advice: [String]

    package init(_ status: ExitStatus, _ what: String, _ advice: String...) {
        self.init(status, what, advice: advice)
    }

    package init(_ status: ExitStatus, _ what: String, advice: [String]) {
        self.status = status
        self.what = what
        self.advice = advice
    }

    /// What is wrong, in one line.
    package var description: String { what }

    /// The last part of what is wrong: of `/a/b: no such file` the second half.
    package var cause: String {
        what.range(of: ": ", options: .backwards).map { String(what[$0.upperBound...]) } ?? what
    }

    /// As it is shown: the advice stands below, a line each. What others wrote steers no terminal.
    package var text: String {
        let name = "identitybus: "
        let lines = ([what] + advice).flatMap { $0.split(separator: "\n") }.map { String($0).harmless }
        return name + lines.joined(separator: "\n" + String(repeating: " ", count: name.count))
    }
}

extension Problem {
    /// What an error means to whoever has typed a command. An error that no command expects is a defect of ours.
    package init(_ error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case let problem as KafkaConfigurationError: self = .setting("\(problem)")
        case let problem as ConfigurationProblem: self = .setting("\(problem)")
        case let problem as AppsFile.Problem:
            self.init(
                .setting, "\(problem)",
                "--apps, or IDENTITYBUS_APPS, names the apps file. All that is wrong in it: identitybus check-config FILE"
            )
        case let problem as SchemaMismatch: self.init(.setting, problem.description)
        case let failure as StorageError: self.init(failure)
        case let failure as KafkaError: self.init(failure, at: nil)
        case let failure as CocoaError: self.init(file: failure)
        default: self.init(.defect, "\(error)", "This should not happen. Please report it with the whole command line.")
        }
    }

    private static func setting(_ what: String) -> Problem {
        Problem(.setting, what, "docs/operations.md lists the settings and what each may be.")
    }

    private init(_ failure: StorageError) {
        // What libpq says of a connection does not say whose.
        let words = (failure.sqlState?.hasPrefix("08") == true ? "\(Self.database): " : "") + failure.message
        let isConnecting = failure.sqlState == "08001"
        let hasNoRight =
            failure.sqlState == "42501" || words.contains("authentication failed") || words.contains("pg_hba.conf")
            || words.contains("permission denied") || words.contains("no password supplied")
            || words.contains("not currently accepting connections")
            || isConnecting && failure.message.hasPrefix(#"role ""#)
        switch failure.kind {
        case _ where failure == .transactionPooler:
            self.init(.setting, "\(Self.database): \(words)", "Check the host and the port of DATABASE_URL.")
        case _ where failure.isDamaged: self.init(.setting, words, advice: Self.damagedAdvice)
        case _ where PostgreSQLCause(failure) == .readOnly || failure.sqlState == "25006":
            self.init(.noRight, words, Self.readOnlyAdvice)
        case _ where hasNoRight:
            self.init(.noRight, words, "Check the user and the password of DATABASE_URL, and what that user may do.")
        case _ where isConnecting && words.contains("database \"") && words.contains("does not exist"):
            self.init(
                .setting, words, "Check the name of the database in DATABASE_URL, or make it: CREATE DATABASE.")
        case _ where isConnecting && PostgreSQLCause(failure) == .parameter:
            self.init(.setting, words, "Check the parameters of DATABASE_URL, and the PG* variables that are set.")
        case _ where isConnecting:
            self.init(.away, words, "Does PostgreSQL run there? DATABASE_URL has its host and port.")
        case _ where ["42P01", "42703", "42883"].contains(failure.sqlState):
            self.init(.setting, words, "The store is of another version: start its service of this version once.")
        case .unavailable, .conflict, .fenced:
            self.init(.away, words, "Try again when it is well; the database's own log may say more.")
        case .invalid: self.init(.setting, words, "Check DATABASE_URL.")
        }
    }

    /// What to ask about a file that SQLite cannot use.
    package static let isItAStore = "Is it the store of a service? --data-dir names their folder."

    /// What to do about a file that is damaged, or none of SQLite.
    package static let damagedAdvice = [
        isItAStore, "If it is, it is damaged: put a back-up in its place (docs/operations.md, \"Restoring a backup\").",
    ]

    /// What to do about a database that takes no writes.
    package static let readOnlyAdvice =
        "Is it a standby, or is default_transaction_read_only on? DATABASE_URL may name several hosts."

    /// PostgreSQL and where it should be, as every command has it from its environment.
    private static var database: String {
        let url = try? EnvironmentSettings(ProcessInfo.processInfo.environment).secret("DATABASE_URL")
        return "PostgreSQL" + (url.map { " at \(PostgreSQLDatabase.place(of: $0))" } ?? "")
    }

    /// - Parameter address: where the broker should be.
    package init(_ failure: KafkaError, at address: String?) {
        if let failure = failure.failure {
            let status = failure.cause.status
            let verb =
                status == .away ? "cannot be reached" : status == .noRight ? "does not let us in" : "cannot be used"
            let what = failure.cause == .timedOut ? "does not answer" : "\(verb): \(failure.words)"
            self.init(status, "Kafka at \(failure.address) \(what).", advice: failure.cause.advice)
            return
        }
        let place = address.map { "Kafka at \($0)" } ?? "Kafka"
        switch failure.code {
        case KafkaError.Code.topicAuthorizationFailed:
            self.init(.noRight, "\(place) does not allow it: \(failure.message)", "Give this user the right by an ACL.")
        case KafkaError.Code.unknownTopic, KafkaError.Code.unknownTopicOrPartition:
            self.init(.refused, "\(place): \(failure.message)")
        case KafkaError.Code.messageTooLarge, KafkaError.Code.recordListTooLarge, KafkaError.Code.policyViolation,
            KafkaError.Code.invalidRecord, KafkaError.Code.invalidMessage:
            self.init(.refused, "\(place) refuses the message: \(failure.message)")
        case KafkaError.Code.invalidReplicationFactor:
            self.init(
                .setting, "\(place) refuses it: \(failure.message)",
                "Set TOPIC_REPLICATION_FACTOR to as many copies as there are brokers, or fewer; -1 leaves it to Kafka.")
        case KafkaError.Code.invalidPartitions, KafkaError.Code.invalidConfig:
            self.init(
                .setting, "\(place) refuses it: \(failure.message)",
                "Set TOPIC_PARTITIONS, or the setting that is named, to what this Kafka allows.")
        default: self.init(.away, "\(place) does not answer: \(failure.message)")
        }
    }

    /// - Parameter failure: of a file, in the words of the system.
    private init(file failure: CocoaError) {
        let path = failure.filePath.map { "\($0): " } ?? ""
        let cause = (failure.underlying as? POSIXError)?.code ?? Self.cause(failure)
        let words = cause.map { String(cString: strerror($0.rawValue)).lowercased() } ?? failure.localizedDescription
        self.init(cause == .EACCES || cause == .EPERM ? .noRight : .setting, path + words)
    }

    private static func cause(_ failure: CocoaError) -> POSIXErrorCode? {
        switch failure.code {
        case .fileNoSuchFile, .fileReadNoSuchFile: .ENOENT
        case .fileReadNoPermission, .fileWriteNoPermission: .EACCES
        case .fileWriteFileExists: .EEXIST
        case .fileWriteOutOfSpace: .ENOSPC
        case .fileWriteVolumeReadOnly: .EROFS
        default: nil
        }
    }
}
