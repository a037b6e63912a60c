// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Messaging
import Observability
import Runtime
import Supervision

/// Reaches Kafka as the services do. What is behind that is ``ClusterExamination``'s.
struct KafkaExamination: Sendable {
    let configuration: ServiceConfiguration
    let needs: KafkaNeeds
    /// What to do when nothing is at the address.
    let advice: String

    private static let patience = Duration.seconds(6)

    func run() -> [Finding] {
        let access = KafkaAccess(configuration.kafka, advice: advice)
        let start = ContinuousClock.now
        do {
            guard let reached = try access.connect(within: Self.patience, whenKnown: .seconds(1)) else { return [] }
            let others = BrokersAlone(access.configuration, access.configuration.bootstrapAddresses)
            let found = (letIn(reached) + away(others)).taking(start.duration(to: .now))
            return found + ClusterExamination(access: access, needs: needs, reached: reached).run()
        } catch let error as KafkaError {
            return refusal(error, access).taking(start.duration(to: .now))
                .skippingRest(of: .kafka, needs: "the broker", but: CheckID.notAskedFor(access.configuration))
        } catch {
            return [Finding.fail(.settings, "\(error)")].skippingRest(of: .kafka, needs: "the settings")
        }
    }

    /// For the head of the section.
    var place: String {
        let kafka = configuration.kafka
        let parts = [
            kafka.setting("security.protocol")?.uppercased() ?? "PLAINTEXT",
            kafka.setting("sasl.mechanism") ?? kafka.setting("sasl.mechanisms"),
        ].compactMap { $0 }
        let user = kafka.setting("sasl.username").map { " as \($0)" } ?? ""
        return "\(kafka.bootstrapServers)   \(parts.joined(separator: ", "))\(user)".harmless
    }

    /// A broker has answered: so all that stands before an answer is well.
    private func letIn(_ reached: KafkaAccess.Reached) -> [Finding] {
        let time = ContinuousClock.now
        let brokers = (try? reached.admin.reach(timeout: .seconds(2))) ?? 0
        let took = time.duration(to: .now).inMilliseconds
        let cluster = (try? reached.admin.clusterID(timeout: .seconds(2))).flatMap { $0 } ?? "unknown"
        var found = [
            Finding.ok(.kafkaReachable, "\(brokers) broker\(brokers == 1 ? "" : "s"), \(took) ms, cluster \(cluster)")
        ]
        let kafka = configuration.kafka
        if kafka.usesTLS {
            found.append(.ok(.kafkaTLS, "the port speaks TLS"))
            found += reached.admin.certificates.sorted { $0.key < $1.key }.prefix(3).map {
                Self.certificate(.kafkaCertificate, $1, of: $0, now: .now)
            }
            if let (place, own) = kafka.ownCertificate {
                found.append(Self.certificate(.kafkaCertificate, own, of: place, isOurs: true, now: .now))
            }
        }
        if kafka.signsIn { found.append(signedIn) }
        return found
    }

    private var signedIn: Finding {
        let kafka = configuration.kafka
        guard kafka.tokenFile != nil, !Self.renewsTokens(KafkaLibrary.version) else {
            return .ok(.kafkaSignIn, "as \(kafka.setting("sasl.username") ?? kafka.clientID)")
        }
        return .warn(
            .kafkaSignIn,
            "by a token; librdkafka \(KafkaLibrary.version) goes on with a connection's first token after that has ended",
            fix: "Set connections.max.reauth.ms on the brokers, so that they end those, or use librdkafka 2.2."
        )
    }

    /// Whether a connection gets a new token before the one that it began with has ended (KIP-368).
    static func renewsTokens(_ version: String) -> Bool {
        let numbers = version.split(separator: ".").compactMap { Int($0.prefix { $0.isNumber }) }
        return numbers.count >= 2 && (numbers[0], numbers[1]) >= (2, 2)
    }

    /// Of several addresses, those that nobody answers at: services go on with the others.
    private func away(_ brokers: BrokersAlone) -> [Finding] {
        guard brokers.addresses.count > 1 else { return [] }
        return brokers.failures.map { address, failure in
            .warn(
                failure.cause.check, "\(address): \(failure.words); others answer", subject: address,
                fix: "Start that broker, or take it out of KAFKA_BOOTSTRAP_SERVERS.", cause: failure.cause.rawValue)
        }
    }

    /// How much longer a certificate is good.
    /// - Parameters:
    ///   - place: the server's address, or what names our own.
    ///   - isOurs: whether it is what we show.
    static func certificate(
        _ id: CheckID, _ shown: PeerCertificate, of place: String, isOurs: Bool = false, now: Timestamp
    ) -> Finding {
        let days = shown.daysLeft(now)
        let left = days >= 0 ? "\(days) days left" : "ended \(-days) days ago"
        let words =
            (isOurs ? "ours (\(place)): " : "")
            + "\(shown.subject.isEmpty ? place : shown.subject), \(left), issued by \(shown.issuer)"
        if days >= ConfigurationExamination.soon { return .ok(id, words, subject: place) }
        let date = shown.ends.rfc3339.prefix(10)
        return .warn(
            id, "\(words): \(days >= 0 ? "ends" : "ended") on \(date)", subject: place,
            fix: isOurs ? "Have another one issued, and put it there." : "Who runs that server renews it.")
    }

    /// A port that closes each connection looks like one that wants TLS, to who speaks none. It does not speak TLS either.
    private func told(_ error: KafkaError) -> KafkaError {
        guard let failure = error.failure, failure.cause == .plainToTLS else { return error }
        var other = configuration.kafka
        other.common["security.protocol"] = other.signsIn ? "sasl_ssl" : "ssl"
        other.common["enable.ssl.certificate.verification"] = "false"
        let met = BrokersAlone(other, [failure.address]).failures.first?.failure.cause
        guard let met, [.closed, .handshakeEnded, .tlsToPlain].contains(met) else { return error }
        return KafkaError(code: error.code, failure: BrokerFailure(.closed, at: failure.address))
    }

    /// What fails, and before it what is well.
    private func refusal(_ error: KafkaError, _ access: KafkaAccess) -> [Finding] {
        let error = told(error)
        guard let failure = error.failure else { return [.fail(.kafkaReachable, "\(error)")] }
        let id = failure.cause.check
        let problem = access.problem(error)
        var found: [Finding] = []
        if id != .kafkaReachable {
            found.append(.ok(.kafkaReachable, "\(failure.address): the port answers"))
            let kafka = configuration.kafka
            if id != .kafkaTLS, kafka.usesTLS { found.append(.ok(.kafkaTLS, "the port speaks TLS")) }
            if id == .kafkaSignIn, kafka.usesTLS {
                found.append(.ok(.kafkaCertificate, "is of a known authority and for this host name"))
            }
        }
        var words = "\(failure.address): \(failure.words)"
        // Of ours the broker does not say more.
        if id == .kafkaCertificate, failure.cause != .clientCertificate, let shown = failure.certificate {
            let now = Timestamp.now
            words +=
                shown.begins > now
                ? ". It begins on \(shown.begins.rfc3339.prefix(10))"
                : ". It is \(shown.subject), issued by \(shown.issuer), until \(shown.ends.rfc3339.prefix(10))"
        }
        let named = ["ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.location"]
        if failure.cause == .clientCertificate, named.allSatisfy({ configuration.kafka.setting($0) == nil }) {
            words =
                "\(failure.address): it asks for a certificate of this client, and none is set "
                + "(KAFKA_SSL_CERTIFICATE_LOCATION, KAFKA_SSL_KEY_LOCATION)"
        }
        var finding = Finding.fail(id, words, subject: failure.address, cause: failure.cause.rawValue)
        finding.fix = problem.advice
        if failure.cause == .clientCertificate, let (place, own) = configuration.kafka.ownCertificate,
            let flaw = own.flaw(.now)
        {
            finding.message += ". The one of \(place) \(flaw)"
            finding.fix = ["Put one there that is good now."]
        }
        return found + [finding]
    }
}

extension BrokerFailure.Cause {
    /// Which check it is that fails.
    var check: CheckID {
        switch self {
        case .nameNotResolved, .refused, .unreachable, .timedOut, .closed, .notKafka, .other: .kafkaReachable
        case .plainToTLS, .tlsToPlain, .handshakeEnded: .kafkaTLS
        case .unknownAuthority, .wrongHostName, .certificateOver, .certificateRefused, .clientCertificate:
            .kafkaCertificate
        case .wantsSASL, .wantsNoSASL, .wrongMechanism, .wrongCredentials, .noToken: .kafkaSignIn
        }
    }
}

extension CheckID {
    /// What there is not to look at with these settings.
    static func notAskedFor(_ kafka: KafkaConfiguration) -> Set<CheckID> {
        var ids: Set<CheckID> = []
        if !kafka.usesTLS { ids.formUnion([.kafkaTLS, .kafkaCertificate]) }
        if !kafka.signsIn { ids.insert(.kafkaSignIn) }
        return ids
    }
}

extension KafkaConfiguration {
    /// A setting of the connections.
    func setting(_ key: String) -> String? { producer[key] ?? common[key] }

    /// What we show to brokers, and what names it; `nil` where there is none, or one that is not in PEM form.
    var ownCertificate: (place: String, certificate: PeerCertificate)? {
        let text =
            setting("ssl.certificate.pem")
            ?? setting("ssl.certificate.location").flatMap { try? String(contentsOfFile: $0, encoding: .utf8) }
        return text.flatMap { PeerCertificate(pem: $0) }.map {
            (setting("ssl.certificate.location") ?? "ssl.certificate.pem", $0)
        }
    }

    var usesTLS: Bool { setting("security.protocol")?.uppercased().hasSuffix("SSL") == true }
    var signsIn: Bool { setting("security.protocol")?.uppercased().hasPrefix("SASL") == true }
}
