// SPDX-License-Identifier: Apache-2.0

import Apps
import Storage

/// An environment variable that configures a program: what it may be, who reads it, what it is for. ``all`` is the only
/// list of them. Readers take ranges and defaults from it, `identitybus settings` prints it, a start looks in it for what
/// nothing reads, and the tables of docs/operations.md and docs/gateway.md are compared with it.
public struct Setting: Sendable {
    /// Which programs read a setting.
    public enum Reader: String, Sendable, CaseIterable {
        /// Each service with a store.
        case services
        case sync
        case gateway
        /// The command line.
        case identitybus
    }

    public enum Kind: Sendable, Equatable {
        case integer(ClosedRange<Int>)
        case choice([String])
        /// Anything else, with what it may be in words.
        case text(String)
    }

    /// Of a family its beginning and `*`, such as `KAFKA_SASL_*`.
    public let name: String
    public let kind: Kind
    /// What holds where it is not set; `nil` for nothing.
    public let standard: String?
    /// What has to be known of ``standard``: a unit, or that there is none and why that matters.
    public let remark: String?
    public let readers: [Reader]
    /// Whether its value is never shown, and a `_FILE` variant names a file that holds it.
    public let isSecret: Bool
    public let meaning: String

    init(
        _ name: String, _ kind: Kind, _ standard: String? = nil, _ remark: String? = nil, by readers: [Reader],
        isSecret: Bool = false, _ meaning: String
    ) {
        self.name = name
        self.kind = kind
        self.standard = standard
        self.remark = remark
        self.readers = readers
        self.isSecret = isSecret
        self.meaning = meaning
    }

    init(
        _ name: String, _ range: ClosedRange<Int>, _ standard: Int?, _ remark: String? = nil, by readers: [Reader],
        _ meaning: String
    ) {
        self.init(name, .integer(range), standard.map { "\($0)" }, remark, by: readers, meaning)
    }

    init<Value: RawRepresentable & CaseIterable>(
        _ name: String, _ standard: Value, _ remark: String? = nil, by readers: [Reader], _ meaning: String
    ) where Value.RawValue == String {
        self.init(name, .choice(Value.allCases.map(\.rawValue)), standard.rawValue, remark, by: readers, meaning)
    }

    /// What it may be, in words for people.
    public var allowed: String {
        switch kind {
        case .integer(let range): "\(range.lowerBound) to \(range.upperBound)"
        case .choice(let values): values.joined(separator: ", ")
        case .text(let words): words
        }
    }

    /// The default, in words for people.
    public var shownStandard: String {
        let text = standard ?? "none"
        return remark.map { "\(text) (\($0))" } ?? text
    }

    public var isFamily: Bool { name.hasSuffix("*") }

    /// The variable that names the file which holds the value.
    public var fileVariable: String? { isSecret && !isFamily ? "\(name)_FILE" : nil }

    /// Why a value cannot be used, where that is seen without looking further.
    public func problem(of value: String) -> String? {
        switch kind {
        case .integer(let range):
            if let number = Int(value), range.contains(number) { return nil }
            let words = "\(value) is not a whole number from \(range.lowerBound) to \(range.upperBound)"
            guard value.hasPrefix("tcp://") else { return words }
            return words + "; Kubernetes sets it for a service of that name: set enableServiceLinks to false"
        case .choice(let values):
            return values.contains { $0.lowercased() == value.lowercased() } ? nil : "\(value) is not one of \(allowed)"
        case .text: return nil
        }
    }

    /// The setting that a variable is: itself, or one of a family.
    public static func named(_ variable: String) -> Setting? {
        known[variable] ?? all.first { $0.isFamily && variable.hasPrefix($0.name.dropLast()) }
    }

    private static let known = Dictionary(all.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
}

// MARK: - What nothing reads

extension Setting {
    /// Something in an environment that its author should look at. It stops nothing.
    public struct Remark: Sendable, Equatable, CustomStringConvertible {
        /// A stable name, that of the log's event too.
        public enum Event: String, Sendable {
            /// Nothing reads the variable.
            case unknown = "settings.unknown"
            /// A secret is given twice.
            case twice = "settings.twice"
        }

        public let event: Event
        public let variable: String
        /// One line, without values.
        public let description: String
    }

    /// What an environment has that looks like a setting of ours and is none, and what it says twice.
    public static func remarks(on environment: [String: String]) -> [Remark] {
        environment.filter { !$0.value.isEmpty }.sorted { $0.key < $1.key }.compactMap { variable, value in
            if let setting = named(variable) {
                if setting.name == "PG*" { return unknownToLibpq(variable) }
                guard let file = setting.fileVariable, environment[file]?.isEmpty == false else { return nil }
                return Remark(
                    event: .twice, variable: variable,
                    description: "\(variable) and \(file) are both set. Keep one of them.")
            }
            if isSetByOthers(variable, value) { return nil }
            guard let words = guess(variable) else { return nil }
            return Remark(event: .unknown, variable: variable, description: "\(variable) is read by nothing.\(words)")
        }
    }

    /// Other programs of PostgreSQL have variables too: only what is nearly one of libpq's is told.
    private static func unknownToLibpq(_ variable: String) -> Remark? {
        let names = PostgreSQLDatabase.variables
        guard !names.contains(variable), let near = nearest(to: variable, in: names) else { return nil }
        return Remark(
            event: .unknown, variable: variable,
            description: "\(variable) is read by nothing. Did you mean \(near)?")
    }

    /// What may have been meant; `nil` for what is none of ours, or the file of a secret.
    private static func guess(_ variable: String) -> String? {
        if variable.hasSuffix("_FILE"), let setting = named(String(variable.dropLast(5))) {
            return setting.isSecret ? nil : " Only secrets have a _FILE variant: set \(setting.name)."
        }
        let names = all.filter { !$0.isFamily }.flatMap { [$0.name] + ($0.fileVariable.map { [$0] } ?? []) }
        if let near = nearest(to: variable, in: names) { return " Did you mean \(near)?" }
        return beginnings.contains { variable.hasPrefix($0) } ? "" : nil
    }

    /// What no other program's variables begin with beside ours.
    private static let beginnings = [
        "IDENTITYBUS_", "KAFKA_", "GATEWAY_", "TOPIC_", "DATABASE_", "SQLITE_", "JOURNAL_", "BATCH_", "DRAIN_",
        "REPLAY_",
    ]

    /// Kubernetes tells every container where the services of its namespace are: `KAFKA_SERVICE_HOST`,
    /// `GATEWAY_PORT_80_TCP_ADDR`.
    private static func isSetByOthers(_ variable: String, _ value: String) -> Bool {
        if variable.hasSuffix("_SERVICE_HOST") || variable.contains("_SERVICE_PORT") { return true }
        if variable.contains(/_PORT_[0-9]+_(TCP|UDP|SCTP)/) { return true }
        return variable.hasSuffix("_PORT") && value.contains("://")
    }
}
