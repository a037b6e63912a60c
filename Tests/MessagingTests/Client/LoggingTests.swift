// SPDX-License-Identifier: Apache-2.0

import Logging
import MessagingTestKit
import Testing

@testable import Messaging

@Suite(.dedicatedThread) struct LoggingTests {
    @Test(arguments: [
        (Int32(0), Logger.Level.critical), (2, .critical), (3, .error), (4, .warning), (5, .notice), (6, .info),
        (7, .debug), (8, .debug),
    ])
    func syslogLevelsAreMapped(syslog: Int32, level: Logger.Level) {
        #expect(Logger.Level(syslog: syslog) == level)
    }

    @Test func linesOfLibrdkafkaNameTheirFacility() throws {
        let recorder = LogRecorder()
        // Nothing listens on port 1, which librdkafka reports from a thread of its own.
        let configuration = KafkaConfiguration(bootstrapServers: "127.0.0.1:1")
        let producer = try KafkaProducer(configuration: configuration, logger: recorder.logger)
        try wait(until: recorder.lines.contains { $0.metadata["facility"] == "FAIL" }) {
            _ = producer.poll(timeout: .milliseconds(20))
        }
        producer.close(timeout: .seconds(5))
        #expect(recorder.lines.contains { $0.level == .debug && $0.metadata["severity"] == "error" })
        #expect(recorder.lines.allSatisfy { $0.level <= .debug })
    }
}
