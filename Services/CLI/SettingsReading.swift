// SPDX-License-Identifier: Apache-2.0

import Apps
import Gateway
import Messaging
import Runtime
import Supervision
import Sync

/// Reads the settings as a program does at its start, and goes on where that would stop, to find all that is wrong at once.
struct SettingsReading {
    /// What stops the start.
    struct Mistake {
        var variable: String
        /// Without the variable, and without secrets.
        var words: String
    }

    private(set) var mistakes: [Mistake] = []
    /// What the program starts with, as far as it can be read; `nil` when it cannot be read at all.
    private(set) var configuration: ServiceConfiguration?
    /// Whether what it says of Kafka, or of the database, is not what was set.
    private(set) var isKafkaUnknown = false
    private(set) var isDatabaseUnknown = false

    private var environment: [String: String]
    private let program: String

    static let gateway = "gateway"
    private static let mostMistakes = 30

    /// - Parameter program: a service, or `gateway`.
    init(_ environment: [String: String], of program: String) {
        self.environment = environment
        self.program = program
        while configuration == nil, mistakes.count < Self.mostMistakes {
            do {
                configuration = try read()
            } catch {
                let mistake = Self.mistake(error)
                if !isConsequence(mistake) { mistakes.append(mistake) }
                guard mend(mistake.variable) else { break }
            }
        }
        lookForInternalKey()
    }

    private func read() throws -> ServiceConfiguration {
        if program == Self.gateway {
            let gateway = try GatewayConfiguration(environment: environment)
            try gateway.readAhead()
            return gateway.service
        }
        let configuration = try ServiceConfiguration(environment: environment, service: program)
        _ = try configuration.ofEachLoop()
        try configuration.checkHosts()
        try configuration.checkFolder()
        if program == SyncService.name { _ = try SyncService(environment: environment) }
        return configuration
    }

    private mutating func lookForInternalKey() {
        guard let configuration, configuration.keys.isEmpty,
            mistakes.allSatisfy({ !$0.variable.hasPrefix(Self.internalKey) }),
            services.contains(where: { $0.name == program && $0.needsInternalKey })
        else { return }
        mistakes.append(
            Mistake(
                variable: Self.internalKey,
                words: "is not set; the \(program) service signs what it sends to other services with it"))
    }

    private static let internalKey = "IDENTITYBUS_INTERNAL_KEY"

    /// Of settings of a connection one is nothing without the other: what is missing once one was taken away is no other
    /// mistake.
    private func isConsequence(_ mistake: Mistake) -> Bool {
        func isOfConnection(_ name: String) -> Bool { name.hasPrefix("KAFKA_SASL_") || name.hasPrefix("KAFKA_SSL_") }
        return mistake.variable.hasPrefix("KAFKA_") && environment[mistake.variable] == nil
            && mistakes.contains { isOfConnection($0.variable) }
    }

    private static func mistake(_ error: any Error) -> Mistake {
        switch error {
        case let problem as ConfigurationProblem: Mistake(variable: problem.variable, words: problem.problem)
        case let problem as KafkaConfigurationError: Mistake(variable: problem.variable, words: problem.message)
        default: Mistake(variable: "the environment", words: "\(error)")
        }
    }

    /// Takes away what is wrong, or puts something in the place of what is missing, so that the rest can be read.
    /// - Returns: whether that changed anything.
    private mutating func mend(_ variable: String) -> Bool {
        if variable.hasPrefix("KAFKA_") { isKafkaUnknown = true }
        let before = environment
        if variable.hasPrefix("PG") {
            // libpq reads it in the process itself, wherever a URL is.
            isDatabaseUnknown = true
            environment["DATABASE_URL"] = nil
            environment["DATABASE_URL_FILE"] = nil
            return environment != before
        }
        if variable.hasPrefix("DATABASE_") || variable.hasPrefix("SQLITE_") || variable == "DATA_DIR" {
            isDatabaseUnknown = true
        }
        for name in [variable, "\(variable)_FILE"] { environment[name] = nil }
        switch variable {
        case "KAFKA_BOOTSTRAP_SERVERS": environment[variable] = "127.0.0.1:1"
        // What else is said of the access depends on it.
        case "KAFKA_SECURITY_PROTOCOL": forgetKafka()
        case _ where variable.hasPrefix("KAFKA_") && environment == before:
            forgetKafka()
        case _ where variable.hasPrefix("IDENTITYBUS_"):
            if environment == before { environment["IDENTITYBUS_PREVIOUS_INTERNAL_KEYS"] = nil }
            // Without a key it is no mistake more that there is none.
            environment["IDENTITYBUS_TRUST"] = Authenticator.Trust.cluster.rawValue
        // One without the other is none.
        case _ where variable.hasPrefix("GATEWAY_TLS_"):
            environment = environment.filter { !$0.key.hasPrefix("GATEWAY_TLS_") }
        default: break
        }
        return environment != before
    }

    /// But for its address.
    private mutating func forgetKafka() {
        environment = environment.filter { !$0.key.hasPrefix("KAFKA_") || $0.key == "KAFKA_BOOTSTRAP_SERVERS" }
    }
}
