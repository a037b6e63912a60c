// SPDX-License-Identifier: Apache-2.0

import Foundation
package import Messaging

/// Kafka as a short-lived command uses it: it is reached in a few seconds, or the command ends and says why it is not.
package struct KafkaAccess {
    package var configuration: KafkaConfiguration
    /// What to do when nothing is there, or no Kafka.
    private let advice: String

    package init(
        _ configuration: KafkaConfiguration,
        advice: String = "Does Kafka run there? Its address is from KAFKA_BOOTSTRAP_SERVERS."
    ) {
        self.configuration = configuration
        self.advice = advice
    }

    /// How long a broker is waited for that gives no sign, and one whose failure is known: a name that is not known now
    /// seldom is a second later.
    package static let patience: Duration = .seconds(10)
    package static let patienceWithCause: Duration = .seconds(2)

    /// Kafka, reached.
    package struct Reached {
        package let admin: KafkaAdmin
        /// The topics that we may see, with their numbers of partitions.
        package let topics: [String: Int]
    }

    /// Returns when a broker answers.
    /// - Parameter stop: asked every second.
    /// - Throws: `Problem`: whom it could not reach, why, and what to do.
    package func reach(within limit: Duration = patience, unless stop: () -> Bool = { false }) throws -> Reached {
        do {
            if let reached = try connect(within: limit, unless: stop) { return reached }
        } catch let error as KafkaError {
            throw problem(error)
        }
        throw Problem(.interrupted, "interrupted; nothing was done")
    }

    /// The same for who tells people in another way.
    /// - Parameter known: how long one is waited for whose failure is known.
    /// - Returns: `nil` when it was asked to stop.
    /// - Throws: `KafkaError` with its first cause, or `KafkaConfigurationError`.
    package func connect(
        within limit: Duration = patience, whenKnown known: Duration = patienceWithCause,
        unless stop: () -> Bool = { false }
    ) throws -> Reached? {
        let admin = try KafkaAdmin(configuration: configuration, logger: .quiet)
        let addresses = Set(configuration.bootstrapAddresses)
        let start = ContinuousClock.now
        while true {
            do {
                return Reached(admin: admin, topics: try admin.existingTopics(timeout: min(.seconds(1), limit)))
            } catch {
                if stop() {
                    admin.close(timeout: .zero)
                    return nil
                }
                let waited = ContinuousClock.now - start
                let failures = admin.failures.filter { $0.cause != .timedOut }
                // One that is away says nothing of the others.
                let isCauseKnown =
                    error.failure?.cause == .noToken || addresses.isSubset(of: failures.map(\.address))
                if waited < limit, !isCauseKnown || waited < known { continue }
                admin.close(timeout: .zero)
                throw Self.firstToMend(error, failures)
            }
        }
    }

    /// Of several brokers that fail: one that answers and does not let us in tells more than one that is away.
    private static func firstToMend(_ error: KafkaError, _ failures: [BrokerFailure]) -> KafkaError {
        guard error.failure?.cause.status == .away, let other = failures.first(where: { $0.cause.status != .away })
        else { return error }
        return KafkaError(code: error.code, failure: other)
    }

    package func problem(_ error: KafkaError) -> Problem {
        var problem = Problem(error, at: configuration.bootstrapServers)
        if error.failure?.cause == .notKafka {
            problem.advice = [advice]
        } else if problem.status == .away {
            problem.advice.insert(advice, at: 0)
        }
        return problem
    }

    /// What our Kafka user may not do.
    /// - Parameters:
    ///   - verb: such as `write`.
    ///   - right: Kafka's name of it, such as `Write`.
    package func noRight(to verb: String, _ right: String, _ topics: [String]) -> Problem {
        let name = configuration.common["sasl.username"]
        let more = topics.count > 3 ? " and \(topics.count - 3) more" : ""
        let common = topics.dropFirst().reduce(topics.first ?? "") { $0.commonPrefix(with: $1) }
        let pattern = topics.count == 1 ? common : "\(common) --resource-pattern-type prefixed"
        return Problem(
            .noRight,
            "\(name.map { "Kafka user \($0)" } ?? "this Kafka user") may not \(verb) "
                + "\(topics.prefix(3).joined(separator: ", "))\(more) at \(configuration.bootstrapServers) "
                + "(\(right.uppercased()) on the topic\(topics.count == 1 ? "" : "s")).",
            "Who runs Kafka allows it: kafka-acls.sh --bootstrap-server \(configuration.bootstrapServers) --add "
                + "--allow-principal User:\(name ?? "NAME") --operation \(right) --topic \(pattern)")
    }
}

extension BrokerFailure.Cause {
    /// Where somebody has to look: at Kafka, at our settings, or at what this user may do.
    var status: ExitStatus {
        switch self {
        case .nameNotResolved, .refused, .unreachable, .timedOut, .closed, .other: .away
        case .wrongCredentials: .noRight
        case .plainToTLS, .tlsToPlain, .handshakeEnded, .notKafka, .wantsSASL, .wantsNoSASL, .unknownAuthority,
            .wrongHostName, .certificateOver, .certificateRefused,
            .clientCertificate, .wrongMechanism, .noToken:
            .setting
        }
    }

    /// What to set, where a setting is wrong.
    private var setting: String {
        switch self {
        case .plainToTLS: "Set KAFKA_SECURITY_PROTOCOL to SSL or SASL_SSL, or use Kafka's port without TLS."
        case .tlsToPlain, .handshakeEnded:
            "Use Kafka's port with TLS, or set KAFKA_SECURITY_PROTOCOL to PLAINTEXT or SASL_PLAINTEXT."
        case .unknownAuthority, .certificateRefused:
            "Set KAFKA_SSL_CA_LOCATION to a file with the certificate of the authority that has issued it."
        case .wrongHostName:
            "Use the name that it is for in KAFKA_BOOTSTRAP_SERVERS, or have one issued for this name."
        case .certificateOver: "Who runs Kafka renews it."
        case .wantsSASL:
            "Set KAFKA_SECURITY_PROTOCOL to SASL_SSL or SASL_PLAINTEXT, KAFKA_SASL_MECHANISM, user name and password."
        case .wantsNoSASL:
            "Use Kafka's port that asks for signing in, or set KAFKA_SECURITY_PROTOCOL to SSL or PLAINTEXT."
        case .wrongMechanism: "Set KAFKA_SASL_MECHANISM to one that this Kafka knows."
        case .noToken:
            "Set KAFKA_OAUTHBEARER_TOKEN_FILE to a file into which somebody writes a token, and a new one before it ends."
        default: "docs/operations.md lists the settings and what each may be."
        }
    }

    /// What to do, where it is no question of the address.
    var advice: [String] {
        switch status {
        case _ where self == .clientCertificate:
            ["Set both to a certificate and its key that this Kafka accepts: it names the authority in ssl.truststore."]
        case .noRight: ["Set both to a user that this Kafka knows, for the mechanism of KAFKA_SASL_MECHANISM."]
        case .setting: [setting]
        default: []
        }
    }
}
