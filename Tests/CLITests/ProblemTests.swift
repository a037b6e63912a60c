// SPDX-License-Identifier: Apache-2.0

import Apps
import Foundation
import Messaging
import Runtime
import Storage
import Supervision
import Testing

/// What people are told when something is wrong, and how a command ends then.
@Suite struct ProblemTests {
    @Test func whatIsWrongStandsAboveWhatToDo() {
        let problem = Problem(.usage, "there is no app demp.", "It has: demo.", "two\nlines \u{1B}[2J")
        #expect(
            problem.text.split(separator: "\n", omittingEmptySubsequences: false) == [
                "identitybus: there is no app demp.", "             It has: demo.", "             two",
                "             lines \\u001b[2J",
            ])
    }

    @Test func anErrorThatNobodyExpectsIsADefect() {
        struct Odd: Error {}
        #expect(Problem(Odd()).status == .defect)
    }

    @Test func aSettingIsTold() {
        let problem = Problem(ConfigurationProblem("BATCH_SIZE", "abc is not a whole number from 1 to 10000"))
        #expect(problem.status == .setting && problem.what.contains("BATCH_SIZE: abc is not"))
    }

    @Test func whatPostgreSQLSaysDecidesToo() {
        let cases: [(String, Supervision.ExitStatus, String)] = [
            ("connection refused", .away, ""), (#"role "x" does not exist"#, .noRight, "Check the user"),
            (#"role "x" is not permitted to log in"#, .noRight, "Check the user"),
            (#"password authentication failed for user "x""#, .noRight, "Check the user"),
            (#"database "x" does not exist"#, .setting, "Check the name of the database"),
        ]
        for (words, status, advice) in cases {
            let problem = Problem(StorageError(kind: .unavailable, message: words, sqlState: "08001"))
            #expect(problem.status == status && problem.what.contains("PostgreSQL: \(words)"), "\(problem)")
            #expect(advice.isEmpty || problem.text.contains(advice), "\(problem.text)")
        }
    }

    @Test func whatKafkaSaysDecidesHowACommandEnds() {
        let cases: [(Int32, Supervision.ExitStatus)] = [
            (KafkaError.Code.transport, .away), (KafkaError.Code.timedOut, .away),
            (KafkaError.Code.topicAuthorizationFailed, .noRight), (KafkaError.Code.messageTooLarge, .refused),
            (KafkaError.Code.unknownTopicOrPartition, .refused),
            (KafkaError.Code.invalidReplicationFactor, .setting), (KafkaError.Code.invalidPartitions, .setting),
            (KafkaError.Code.invalidConfig, .setting),
        ]
        for (code, status) in cases {
            let problem = Problem(KafkaError(code: code), at: "b:9092")
            #expect(problem.status == status && problem.what.contains("Kafka at b:9092"), "\(problem)")
            #expect(problem.what.contains("does not answer") == (status == .away), "\(problem)")
        }
    }

    @Test func tooManyCopiesNameTheirSetting() {
        let problem = Problem(KafkaError(code: KafkaError.Code.invalidReplicationFactor), at: "b:9092")
        #expect(problem.text.contains("Set TOPIC_REPLICATION_FACTOR to as many copies as there are brokers"))
    }

    @Test func aFileIsNamedWithTheSystemsReason() {
        do {
            try FileManager.default.createDirectory(atPath: "/proc/nope", withIntermediateDirectories: true)
            Issue.record("/proc takes folders")
        } catch {
            #expect(Problem(error).what == "/proc/nope: no such file or directory")
        }
    }

    @Test(arguments: [
        (SIGKILL, true, "was killed (signal 9, SIGKILL): often by the kernel's out-of-memory killer, as dmesg tells"),
        (SIGSEGV, true, "crashed (signal 11, SIGSEGV): please report it with its log"),
        (SIGTERM, true, "was ended (signal 15, SIGTERM)"), (1, false, "ended with exit status 1"),
    ])
    func howAChildEndedIsToldInWords(number: Int32, isBySignal: Bool, words: String) {
        #expect(ChildService.end(number, isBySignal: isBySignal) == words)
    }
}
