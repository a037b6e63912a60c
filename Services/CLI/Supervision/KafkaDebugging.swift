// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
package import Logging
import Observability
import Synchronization

/// `--debug-kafka`, of every command that talks to Kafka: librdkafka says on standard error what it does. Without it, it says
/// nothing: what it means stands in errors.
package struct KafkaDebugging: ParsableArguments {
    @Flag(help: "Show what librdkafka, the client of Kafka, says of connections, sign-in and topics.")
    package var debugKafka = false

    package init() {}

    /// Of all that librdkafka can tell, what says why a broker is not reached or lets nobody in.
    private static let contexts = "broker,security,topic"
    private static let isOn = Atomic(false)

    /// To be called before the first client is made.
    /// - Returns: the environment that clients are made from.
    package func begin(_ environment: [String: String]) -> [String: String] {
        guard debugKafka else { return environment }
        Self.isOn.store(true, ordering: .releasing)
        return environment.merging([
            "KAFKA_CONSUMER_DEBUG": Self.contexts, "KAFKA_PRODUCER_DEBUG": Self.contexts,
        ]) { given, _ in given }
    }

    fileprivate static var isWanted: Bool { isOn.load(ordering: .acquiring) }
}

extension Logger {
    /// For the clients of short-lived commands: only what a person must know, and librdkafka's own lines where they are asked
    /// for.
    package static var quiet: Logger {
        var logger = Logger(label: "identitybus.cli") { label in
            CommandLogHandler(errors: StreamLogHandler.standardError(label: label))
        }
        logger.logLevel = KafkaDebugging.isWanted ? .debug : .error
        return logger
    }
}

private struct CommandLogHandler: LogHandler {
    var errors: StreamLogHandler
    var logLevel = Logger.Level.error
    var metadata = Logger.Metadata()

    init(errors: StreamLogHandler) { self.errors = errors }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        if event.metadata?["event"] == "librdkafka" {
            let words = ["severity", "facility", "text"].compactMap { name in event.metadata?[name].map { "\($0)" } }
            complain("librdkafka  \(words.joined(separator: "  "))".harmless)
        } else if event.level >= .error {
            errors.log(event: event)
        }
    }
}
