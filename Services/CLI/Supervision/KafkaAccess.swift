// SPDX-License-Identifier: Apache-2.0

import Foundation
package import Logging
package import Messaging
import Synchronization

/// Kafka as a short-lived command uses it: it is reached in a few seconds, or the command ends and says why it is not.
package struct KafkaAccess {
    package let configuration: KafkaConfiguration
    /// What to do when it is not reached.
    private let advice: [String]
    private let voice = KafkaVoice()

    package init(_ configuration: KafkaConfiguration, advice: [String] = []) {
        var configuration = configuration
        // Why a broker ends a connection is said only where that is wanted. Here it is not printed.
        configuration.common["log.connection.close"] = configuration.common["log.connection.close"] ?? "true"
        self.configuration = configuration
        self.advice = advice
    }

    /// For clients: what librdkafka says is kept here, and not printed.
    package var logger: Logger { voice.logger }

    /// How long a broker is waited for that gives no sign, and one whose failure is known: a name that is not known now
    /// seldom is a second later.
    package static let patience: Duration = .seconds(10)
    private static let patienceWithCause: Duration = .seconds(2)

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
        let admin = try KafkaAdmin(configuration: configuration, logger: voice.logger)
        let start = ContinuousClock.now
        while true {
            do {
                return Reached(admin: admin, topics: try admin.existingTopics(timeout: min(.seconds(1), limit)))
            } catch {
                if stop() {
                    admin.close(timeout: .zero)
                    throw Problem(.interrupted, "interrupted; nothing was done")
                }
                let waited = ContinuousClock.now - start
                let cause = voice.cause
                if waited < limit, cause == nil || waited < Self.patienceWithCause { continue }
                admin.close(timeout: .zero)
                throw problem(cause)
            }
        }
    }

    /// - Parameter error: of a client that was given ``logger``.
    package func problem(_ error: KafkaError) -> Problem { Problem(error, at: configuration.bootstrapServers) }

    private func problem(_ cause: KafkaVoice.Cause?) -> Problem {
        let address = configuration.bootstrapServers
        guard let cause else { return Problem(.away, "Kafka at \(address) does not answer.", advice: advice) }
        let verb = cause.status == .noRight ? "does not let us in" : "cannot be reached"
        return Problem(cause.status, "Kafka at \(address) \(verb): \(cause.words).", advice: cause.advice + advice)
    }
}

/// Keeps what librdkafka says of its connections, and finds the first cause in it.
package final class KafkaVoice: Sendable {
    package struct Cause: Sendable, Hashable {
        package var status: ExitStatus
        package var words: String
        package var advice: [String] = []
    }

    private let heard = Mutex<Cause?>(nil)

    package init() {}

    package var cause: Cause? { heard.withLock { $0 } }

    package var logger: Logger { Logger(label: "identitybus.cli") { _ in Listener(voice: self) } }

    private func hear(_ text: String) {
        guard let cause = Self.cause(of: text) else { return }
        heard.withLock { $0 = $0 ?? cause }
    }

    /// What a line of librdkafka's says about a connection that failed; `nil` when it says nothing of that.
    package static func cause(of text: String) -> Cause? {
        func says(_ words: String) -> Bool { text.localizedCaseInsensitiveContains(words) }
        if says("Failed to resolve") { return Cause(status: .away, words: "its name is not known here") }
        if says("Connection refused") { return Cause(status: .away, words: "connection refused") }
        if says("wrong version number") || says("PLAINTEXT broker listener") {
            return Cause(
                status: .setting, words: "it speaks no TLS there",
                advice: ["Use the port of its TLS listener, or another KAFKA_SECURITY_PROTOCOL."])
        }
        if says("certificate") {
            return Cause(
                status: .setting, words: "its certificate is not accepted (\(core(text)))",
                advice: ["KAFKA_SSL_CA_LOCATION names the file with the certificate of whoever issued it."])
        }
        if says("security.protocol configuration") || says("SSL listener") {
            return Cause(
                status: .setting, words: "it ends the connection, as a TLS listener does with a client without TLS",
                advice: ["KAFKA_SECURITY_PROTOCOL=SSL or SASL_SSL turns TLS on."])
        }
        if says("SASL") {
            return Cause(
                status: .noRight, words: core(text),
                advice: ["Check KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD."])
        }
        if says("Connect to") || says("handshake failed") { return Cause(status: .away, words: core(text)) }
        return nil
    }

    /// Without the thread and the broker in front, and the state of the connection behind.
    private static func core(_ text: String) -> String {
        var text = Substring(text)
        while let end = text.firstRange(of: ": "), text[..<end.lowerBound].contains(where: { "[/".contains($0) }) {
            text = text[end.upperBound...]
        }
        for end in [" (after ", ", verify that"] {
            if let end = text.firstRange(of: end) { text = text[..<end.lowerBound] }
        }
        // What OpenSSL calls its error begins with a number and its own name.
        return String(text.split(separator: "::").last ?? text)
    }

    private struct Listener: LogHandler {
        let voice: KafkaVoice
        var logLevel = Logger.Level.debug
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            if let text = event.metadata?["text"] { voice.hear("\(text)") }
        }
    }
}
