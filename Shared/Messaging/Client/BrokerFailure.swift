// SPDX-License-Identifier: Apache-2.0

package import Contracts
import Synchronization

/// Why a broker cannot be used: the first cause, and where. librdkafka's calls themselves fail with "broker transport
/// failure", whatever it was.
public struct BrokerFailure: Sendable, Hashable, CustomStringConvertible {
    /// The kinds of causes, by stable names.
    public enum Cause: String, Sendable, Hashable, CaseIterable {
        case nameNotResolved = "name-not-resolved"
        case refused
        case unreachable
        case timedOut = "timed-out"
        case closed
        case plainToTLS = "plain-to-tls"
        case tlsToPlain = "tls-to-plain"
        case handshakeEnded = "tls-handshake-ended"
        case notKafka = "not-kafka"
        case wantsSASL = "wants-sasl"
        case wantsNoSASL = "wants-no-sasl"
        case unknownAuthority = "unknown-ca"
        case wrongHostName = "wrong-host-name"
        case certificateOver = "certificate-expired"
        case certificateRefused = "certificate-refused"
        case clientCertificate = "client-certificate"
        case wrongMechanism = "wrong-mechanism"
        case wrongCredentials = "wrong-credentials"
        case noToken = "no-token"
        case other
    }

    public let cause: Cause
    /// The broker's `host:port`; where no single one is meant, those that were tried.
    public let address: String
    /// What it means and what to look at, in words for people.
    public let words: String
    /// What the broker has shown, where that is known.
    package internal(set) var certificate: PeerCertificate?

    public var description: String { "Kafka at \(address): \(words)" }

    package init(_ cause: Cause, at address: String, words: String? = nil) {
        self.cause = cause
        self.address = address
        self.words = words ?? Self.words[cause] ?? "\(cause.rawValue)"
    }

    private static let words: [Cause: String] = [
        .nameNotResolved: "the host name cannot be resolved",
        .refused: "connection refused",
        .timedOut: "no answer",
        .closed: "the connection was closed",
        .plainToTLS:
            "it closed the connection before its first answer; perhaps this port speaks TLS (KAFKA_SECURITY_PROTOCOL)",
        .tlsToPlain: "this port does not speak TLS, which KAFKA_SECURITY_PROTOCOL asks for",
        .handshakeEnded:
            "it ended the TLS handshake, which KAFKA_SECURITY_PROTOCOL asks for; perhaps this port does not speak TLS",
        .notKafka: "what answers there is not a Kafka broker (KAFKA_BOOTSTRAP_SERVERS)",
        .wantsSASL:
            "it answered, and then closed the connection; perhaps this port asks for signing in "
            + "(KAFKA_SECURITY_PROTOCOL, KAFKA_SASL_MECHANISM)",
        .wantsNoSASL: "this port knows no signing in, which KAFKA_SECURITY_PROTOCOL asks for",
        .unknownAuthority: "its certificate is of no known authority (KAFKA_SSL_CA_LOCATION)",
        .wrongHostName: "its certificate is for another host name",
        .certificateOver: "its certificate has expired, or is not valid yet",
        .certificateRefused: "its certificate cannot be verified (KAFKA_SSL_CA_LOCATION)",
        .clientCertificate:
            "it does not accept this client's certificate (KAFKA_SSL_CERTIFICATE_LOCATION, KAFKA_SSL_KEY_LOCATION)",
        .wrongCredentials: "it refuses the user name or the password (KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD)",
        .noToken:
            "there is no token to sign in with (KAFKA_SASL_MECHANISM is OAUTHBEARER, KAFKA_OAUTHBEARER_TOKEN_FILE is not set)",
    ]

    /// What librdkafka's line about a broker says: `[thrd:NAME]: NAME: TEXT (after 5ms in state CONNECT)`, where the name is
    /// `sasl_ssl://host:port/1`.
    /// - Returns: `nil` for a line that has another form.
    init?(line: String) {
        guard line.hasPrefix("[thrd:"), let thread = line.firstRange(of: "]: ") else { return nil }
        let rest = line[thread.upperBound...]
        guard let colon = rest.firstRange(of: ": ") else { return nil }
        let address = Self.address(rest[..<colon.lowerBound])
        var text = String(rest[colon.upperBound...])
        if let state = text.ranges(of: " (after ").last { text.removeSubrange(state.lowerBound...) }
        var cause = Self.cause(of: text.lowercased())
        // Over TLS that is closed by who has seen our certificate, or none.
        if cause == .plainToTLS, rest.hasPrefix("ssl://") || rest.hasPrefix("sasl_ssl://") { cause = .closed }
        let words: String? =
            switch cause {
            case .other: text
            case .unreachable: text.split(separator: " failed: ").last.map(String.init)
            case .wrongMechanism: Self.mechanismWords(text)
            default: nil
            }
        self.init(cause, at: address, words: words)
    }

    /// `SASL PLAIN mechanism handshake failed: Broker: …: broker's supported mechanisms: SCRAM-SHA-256,SCRAM-SHA-512`
    private static func mechanismWords(_ text: String) -> String {
        let words = "it does not know the SASL mechanism (KAFKA_SASL_MECHANISM)"
        guard let list = text.firstRange(of: supportedMechanisms) else { return "\(words): \(text)" }
        let known = text[list.upperBound...].split(separator: ",")
        return known.isEmpty ? words : "\(words); it knows \(known.joined(separator: ", "))"
    }

    private static let supportedMechanisms = "broker's supported mechanisms: "

    /// Without protocol and number.
    private static func address(_ name: Substring) -> String {
        var name = name
        if let scheme = name.firstRange(of: "://") { name = name[scheme.upperBound...] }
        if let slash = name.lastIndex(of: "/") { name = name[..<slash] }
        return String(name)
    }

    /// Words of librdkafka, in lower case, and what they mean; the first that match count.
    private static let marks: [(words: [String], cause: Cause)] = [
        (["failed to resolve"], .nameNotResolved),
        (["connection refused"], .refused),
        (["no route to host"], .unreachable),
        (["unreachable"], .unreachable),
        (["connecting to a ssl listener"], .plainToTLS),
        (["connecting to a plaintext"], .tlsToPlain),
        (["wrong version number"], .tlsToPlain),
        (["packet length too long"], .tlsToPlain),
        (["unexpected eof while reading"], .handshakeEnded),
        (["invalid response size"], .notKafka),
        (["might require sasl"], .wantsSASL),
        // Apache Kafka answers a handshake on a port without SASL like this, with no mechanism in its list.
        (["mechanism handshake failed", "request not valid in current sasl state"], .wantsNoSASL),
        (["client ssl authentication might be required"], .clientCertificate),
        (["alert", "certificate"], .clientCertificate),
        (["alert", "unknown ca"], .clientCertificate),
        // OpenSSL's answer to a client without one; without a common cipher it is the same.
        (["alert", "handshake failure"], .clientCertificate),
        (["certificate verify failed"], .certificateRefused),
        (["oauthbearer", "token"], .noToken),
        (["unsupported sasl mechanism"], .wrongMechanism),
        (["mechanism handshake failed"], .wrongMechanism),
        (["authentication fail"], .wrongCredentials),
        (["sasl authentication error"], .wrongCredentials),
        (["timed out"], .timedOut),
        (["connection reset"], .closed),
        (["disconnected"], .closed),
    ]

    static func cause(of text: String) -> Cause {
        marks.first { $0.words.allSatisfy(text.contains) }?.cause ?? .other
    }

    /// OpenSSL's number for what is wrong with a certificate.
    static func cause(ofCertificateError number: Int32) -> Cause {
        switch number {
        case 9, 10, 13, 14: .certificateOver
        case 62, 63, 64: .wrongHostName
        case 2, 18, 19, 20, 21, 24, 27: .unknownAuthority
        default: .certificateRefused
        }
    }
}

/// What keeps one client from its brokers, as far as librdkafka has said it. It says the cause only in its log, and
/// there from threads of its own; the same one again only after half a minute.
package final class BrokerTrouble: Sendable {
    private struct State {
        var failures: [String: (failure: BrokerFailure, at: ContinuousClock.Instant)] = [:]
        /// When a broker answered last.
        var answered: ContinuousClock.Instant?
        /// What a certificate of that broker was refused for: the line that follows does not say it.
        var certificates: [String: BrokerFailure.Cause] = [:]
        /// What each broker has shown.
        var shown: [String: PeerCertificate] = [:]
        /// Why there is no token to sign in with.
        var tokenProblem: String?
    }

    private let state = Mutex(State())
    /// What is tried where nobody has answered yet.
    private let bootstrapServers: String
    /// Whether a client with these settings can never sign in: nobody gives it a token.
    private let lacksToken: Bool

    init(bootstrapServers: String = "", lacksToken: Bool = false) {
        self.bootstrapServers = bootstrapServers
        self.lacksToken = lacksToken
    }

    /// What keeps a client from having a token to sign in with; `nil`: it has one.
    func note(tokenProblem: String?) { state.withLock { $0.tokenProblem = tokenProblem } }

    /// Takes in a line about a broker that failed.
    func note(line: String) {
        guard var failure = BrokerFailure(line: line) else { return }
        state.withLock { state in
            if failure.cause == .certificateRefused, let cause = state.certificates[failure.address] {
                failure = BrokerFailure(cause, at: failure.address)
            }
            // Brokers come and go; the memory of them must not grow for ever.
            if state.failures.count >= 50 { state.failures = [:] }
            state.failures[failure.address] = (failure, .now)
        }
    }

    /// A broker has shown its certificate.
    func note(certificate: PeerCertificate?, of address: String) {
        state.withLock { state in
            if state.shown.count >= 50 { state.shown = [:] }
            state.shown[address] = certificate
        }
    }

    /// The certificates that brokers have shown, by `host:port`.
    var certificates: [String: PeerCertificate] { state.withLock { $0.shown } }

    /// A broker's certificate was refused.
    func note(certificateError number: Int32, of address: String) {
        let cause = BrokerFailure.cause(ofCertificateError: number)
        state.withLock { state in
            if state.certificates.count >= 50 { state.certificates = [:] }
            state.certificates[address] = cause
        }
    }

    /// A broker has answered: what was is over.
    func isOver() { state.withLock { $0.answered = .now } }

    /// For how long librdkafka keeps a cause to itself that it has told.
    private static let silence = Duration.seconds(32)

    /// Why no broker has answered: the newest cause that was told since one did, or may not be told again yet. How long
    /// was waited is no part of it: who asks again and again says the same.
    var failure: BrokerFailure {
        // Without a token nothing is connected, so no broker says anything.
        if let problem = state.withLock({ $0.tokenProblem }) {
            return BrokerFailure(.noToken, at: bootstrapServers, words: "there is no token to sign in with: \(problem)")
        }
        if let newest { return newest }
        if lacksToken { return BrokerFailure(.noToken, at: bootstrapServers) }
        return BrokerFailure(.timedOut, at: bootstrapServers)
    }

    /// What is known of each broker that failed.
    var failures: [BrokerFailure] { state.withLock { $0.failures.values.map(\.failure) } }

    /// The cause that was told, if one was.
    var newest: BrokerFailure? {
        state.withLock { state in
            guard let newest = state.failures.values.max(by: { $0.at < $1.at }) else { return nil }
            if let answered = state.answered, answered > newest.at, newest.at.duration(to: .now) > Self.silence {
                return nil
            }
            var failure = newest.failure
            failure.certificate = state.shown[failure.address]
            return failure
        }
    }

    /// The error with its first cause, where it only says that no broker could be reached.
    func explain(_ error: KafkaError) -> KafkaError {
        guard !error.isFatal, KafkaError.unreachableCodes.contains(error.code) else { return error }
        return KafkaError(code: error.code, failure: failure)
    }
}
