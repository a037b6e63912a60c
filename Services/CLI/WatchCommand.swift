// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation
import Logging
import Messaging
import Observability
import Runtime
import Supervision
import WireJSON

struct WatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Shows events, replies and dead letters as they come, until Ctrl-C.",
        discussion: """
            Where the internal key or IDENTITYBUS_EVENTS_KEYS is known, a line about an event or a reply that no service \
            has signed says so.
            """)

    @Option(help: "Topics to watch; * stands for anything. Default: all events, replies and dead letters.")
    var topic: [String] = []

    @Flag(help: "Print each record as one JSON line.")
    var json = false

    @Flag(help: "Print authentication codes, tokens and the like too, in place of \u{2039}hidden\u{203A}.")
    var showSecrets = false

    @Flag(help: "Start with the records that are there already.")
    var fromBeginning = false

    @OptionGroup var deployment: Deployment

    func run() throws {
        let kafka = try deployment.kafka()
        let publications = Publications(try deployment.keys(), topics: deployment.topics)
        let reached = try kafka.reach()
        reached.admin.close(timeout: .seconds(1))
        let prefix = deployment.topics.prefix
        let patterns = topic.isEmpty ? ["*.events.v1", "identity.replies.*", "*.dlq.v1"] : topic
        let watched = reached.topics.filter { name, _ in
            name.hasPrefix(prefix)
                && patterns.contains {
                    Self.matches(name, $0) || Self.matches(String(name.dropFirst(prefix.count)), $0)
                }
        }
        guard !watched.isEmpty else {
            throw Problem(
                .refused,
                "no topic matches \(patterns.joined(separator: ", ")) at \(kafka.configuration.bootstrapServers).",
                "Services make their topics when they start.")
        }
        let tail = try KafkaTail(
            configuration: kafka.configuration, partitions: watched, from: fromBeginning ? .beginning : .end,
            logger: kafka.logger)
        complain("watching \(watched.keys.sorted().joined(separator: ", "))")
        let line = RecordLine(showsSecrets: showSecrets)
        let interruption = Interruption()
        while !interruption.isRequested {
            for record in tail.poll(maxRecords: 500, timeout: .milliseconds(200)) {
                if json {
                    print(line.json(record))
                } else {
                    print((isForged(record, publications) ? "NOT SIGNED BY A SERVICE  " : "") + line.text(record))
                }
            }
            fflush(nil)
        }
        tail.close()
    }

    private static func matches(_ name: String, _ pattern: String) -> Bool { fnmatch(pattern, name, 0) == 0 }

    private func isForged(_ record: KafkaRecord, _ publications: Publications) -> Bool {
        let topic = record.topicPartition.topic
        let isPublication = Self.matches(topic, "*.events.v1") || Self.matches(topic, "*identity.replies.*")
        return isPublication && publications.canCheck(topic) && !publications.isGenuine(record)
    }
}
