// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Messaging
import Runtime
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

    @Test func whatKafkaSaysDecidesHowACommandEnds() {
        let cases: [(Int32, Supervision.ExitStatus)] = [
            (KafkaError.Code.transport, .away), (KafkaError.Code.timedOut, .away),
            (KafkaError.Code.topicAuthorizationFailed, .noRight), (KafkaError.Code.messageTooLarge, .refused),
            (KafkaError.Code.unknownTopicOrPartition, .refused),
        ]
        for (code, status) in cases {
            let problem = Problem(KafkaError(code: code), at: "b:9092")
            #expect(problem.status == status && problem.what.contains("Kafka at b:9092"), "\(problem)")
        }
    }

    @Test func aFileIsNamedWithTheSystemsReason() {
        do {
            try FileManager.default.createDirectory(atPath: "/proc/nope", withIntermediateDirectories: true)
            Issue.record("/proc takes folders")
        } catch {
            #expect(Problem(error).cause.allSatisfy { !$0.isUppercase } && !Problem(error).what.contains("Domain"))
        }
    }

    @Test func theNearestWordIsFound() {
        let words = ["link.request", "link.query", "user.create"]
        #expect(nearest(to: "link.requst", in: words) == "link.request")
        #expect(nearest(to: "LINK.QUERY", in: words) == "link.query")
        #expect(nearest(to: "user.craete", in: words) == "user.create")
        #expect(nearest(to: "nosuch.thing", in: words) == nil && nearest(to: "", in: words) == nil)
        #expect(nearest(to: "link.request", in: []) == nil)
    }
}

/// The cause of a failed connection, out of what librdkafka says.
@Suite struct KafkaVoiceTests {
    @Test(arguments: [
        (
            "[thrd:127.0.0.1:1/bootstrap]: 127.0.0.1:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused "
                + "(after 0ms in state CONNECT)", Supervision.ExitStatus.away, "connection refused"
        ),
        (
            "[thrd:x:9092/bootstrap]: x:9092/bootstrap: Failed to resolve 'x:9092': Name or service not known (after 2ms in "
                + "state CONNECT)", .away, "its name is not known here"
        ),
        (
            "[thrd:sasl_ssl://b:9093/bootstrap]: sasl_ssl://b:9093/bootstrap: SASL authentication error: Authentication "
                + "failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512 (after 313ms in "
                + "state AUTH_REQ)", .noRight,
            "SASL authentication error: Authentication failed during authentication due to invalid credentials with SASL "
                + "mechanism SCRAM-SHA-512"
        ),
        (
            "[thrd:ssl://b:9093/bootstrap]: ssl://b:9093/bootstrap: SSL handshake failed: error:0A00010B:SSL routines::wrong "
                + "version number: connecting to a PLAINTEXT broker listener? (after 3ms in state SSL_HANDSHAKE)",
            .setting,
            "it speaks no TLS there"
        ),
        (
            "[thrd:ssl://b:9093/bootstrap]: ssl://b:9093/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate "
                + "verify failed: broker certificate could not be verified, verify that ssl.ca.location is correctly configured "
                + "or root CA certificates are installed (install ca-certificates package) (after 5ms in state SSL_HANDSHAKE)",
            .setting,
            "its certificate is not accepted (certificate verify failed: broker certificate could not be verified)"
        ),
        (
            "b:9093/bootstrap: Disconnected while requesting ApiVersion: might be caused by incorrect security.protocol "
                + "configuration (connecting to a SSL listener?) or broker version is < 0.10", .setting,
            "it ends the connection, as a TLS listener does with a client without TLS"
        ),
    ])
    func aCauseIsFound(_ text: String, _ status: Supervision.ExitStatus, _ words: String) {
        let cause = KafkaVoice.cause(of: text)
        #expect(cause?.status == status && cause?.words == words)
    }

    /// Connections end for many reasons. And librdkafka guesses at an old broker whenever nobody answers, and there are none.
    @Test func whatIsNoCauseIsNotTold() {
        #expect(
            KafkaVoice.cause(
                of:
                    "b:9092/bootstrap: ApiVersionRequest failed: Local: Timed out: probably due to broker version < 0.10 "
                    + "(see api.version.request configuration)") == nil)
        #expect(KafkaVoice.cause(of: "1/1 brokers are down") == nil)
        #expect(KafkaVoice.cause(of: "b:9092/1: Disconnected (after 3ms in state UP)") == nil)
    }

    @Test func theFirstCauseIsKept() {
        let voice = KafkaVoice()
        for text in ["Connection refused", "Failed to resolve 'x'"] {
            voice.logger.error("librdkafka reports", metadata: ["text": "\(text)"])
        }
        #expect(voice.cause?.words == "connection refused")
    }
}
