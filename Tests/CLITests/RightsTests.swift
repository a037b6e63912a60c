// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import EmbeddedBroker
import Foundation
import Messaging
import Supervision
import Testing

@testable import CLI

/// What a Kafka user is told who may not do what a command needs.
@Suite struct RightsTests {
    private static let commands = "identity.link.commands.v1"
    private static let replies = "identity.replies.v1"
    private static let events = "identity.link.events.v1"

    /// Runs a command on a broker where somebody else has taken a right away.
    private func problem(
        _ arguments: [String], without right: EmbeddedBroker.Right, on denied: String
    ) throws -> Problem? {
        let broker = try EmbeddedBroker(
            topics: [Self.commands, Self.replies, Self.events].map { TopicSpec(name: $0, partitions: 1) })
        defer { broker.close() }
        let folder = FileManager.default.temporaryDirectory.appending(path: "rights-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data(broker.bootstrapServers.utf8).write(to: folder.appending(path: "bootstrap"))
        try Data("0123456789abcdef0123456789abcdef".utf8).write(to: folder.appending(path: "internal-key"))
        broker.deny(right, on: denied)
        do {
            var command = try IdentityBusCommand.parseAsRoot(
                arguments + ["--data-dir", folder.path, "--apps", "/none"])
            try command.run()
            return nil
        } catch let problem as Problem {
            return problem
        }
    }

    private let query = [
        "send", "link.query", "--app", "demo", "--key-id", "internal", "--data", #"{"installId":"i"}"#,
    ]

    @Test func whoMayNotWriteIsToldThatNothingWasSent() throws {
        let problem = try #require(try problem(query, without: .write, on: Self.commands))
        #expect(problem.status == .noRight)
        #expect(problem.what.hasPrefix("this Kafka user may not write \(Self.commands) at 127.0.0.1:"), "\(problem)")
        #expect(problem.what.hasSuffix("(WRITE on the topic)."))
        #expect(problem.advice.first?.contains("--operation Write --topic \(Self.commands)") == true)
        #expect(problem.advice.last == "Nothing was sent.")
    }

    @Test func whoMayNotReadTheRepliesIsToldWhereTheCommandIs() throws {
        let problem = try #require(
            try problem(query + ["--wait", "30"], without: .read, on: Self.replies))
        #expect(problem.status == .noRight && problem.what.contains("may not read \(Self.replies)"), "\(problem)")
        #expect(problem.advice.last?.contains("was written to \(Self.commands)[0]@0") == true)
    }

    @Test func whoMayNotReadWhatIsWatchedIsTold() throws {
        let problem = try #require(
            try problem(["watch", "--topic", Self.events], without: .read, on: Self.events))
        #expect(problem.status == .noRight && problem.what.contains("may not read \(Self.events)"), "\(problem)")
        #expect(problem.what.contains("(READ on the topic)"))
    }
}
