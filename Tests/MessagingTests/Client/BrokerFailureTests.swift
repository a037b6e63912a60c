// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Messaging

/// librdkafka 2.0.2's lines, and what they mean.
@Suite struct BrokerFailureTests {
    private static let verify =
        "SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: broker certificate could not be "
        + "verified, verify that ssl.ca.location is correctly configured or root CA certificates are installed"

    private static let handshake = "SSL handshake failed: error:0A000418:SSL routines::"

    @Test(arguments: [
        (
            "127.0.0.1:1/bootstrap", "Connect to ipv4#127.0.0.1:1 failed: Connection refused",
            BrokerFailure.Cause.refused, "127.0.0.1:1"
        ),
        (
            "nowhere:9092/bootstrap", "Failed to resolve 'nowhere:9092': Name or service not known", .nameNotResolved,
            "nowhere:9092"
        ),
        (
            "h:9/3", "Connect to ipv4#10.0.0.1:9 failed: No route to host", .unreachable, "h:9"
        ),
        (
            "ssl://h:9/bootstrap",
            "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?", .tlsToPlain, "h:9"
        ),
        (
            "h:9/bootstrap",
            "Disconnected while requesting ApiVersion: might be caused by incorrect security.protocol configuration "
                + "(connecting to a SSL listener?) or broker version is < 0.10 (see api.version.request)",
            .plainToTLS, "h:9"
        ),
        ("ssl://[::1]:9/bootstrap", verify, .certificateRefused, "[::1]:9"),
        (
            "sasl_ssl://h:9/bootstrap",
            "SASL SCRAM-SHA-512 mechanism handshake failed: Broker: Unsupported SASL mechanism: broker's supported "
                + "mechanisms: PLAIN", .wrongMechanism, "h:9"
        ),
        (
            "sasl_plaintext://h:9/bootstrap", "SASL authentication error: Authentication failed", .wrongCredentials,
            "h:9"
        ),
        (
            "h:9/1",
            "ApiVersionRequest failed: Local: Timed out: probably due to broker version < 0.10 "
                + "(see api.version.request configuration)", .timedOut, "h:9"
        ),
        // What Apache Kafka 3.8.1 makes of settings that do not fit its port.
        (
            "ssl://h:9/bootstrap",
            "SSL handshake failed: error:0A000126:SSL routines::unexpected eof while reading", .handshakeEnded, "h:9"
        ),
        (
            "h:9/bootstrap",
            "Disconnected: verify that security.protocol is correctly configured, broker might require SASL "
                + "authentication", .wantsSASL, "h:9"
        ),
        (
            "sasl_plaintext://h:9/bootstrap",
            "SASL PLAIN mechanism handshake failed: Broker: Request not valid in current SASL state: broker's supported "
                + "mechanisms: ", .wantsNoSASL, "h:9"
        ),
        (
            "h:9/bootstrap",
            "Receive failed: Invalid response size 1213486160 (0..100000000): increase receive.message.max.bytes",
            .notKafka, "h:9"
        ),
        // A broker that asks for a certificate of the client's, and what it says of that.
        ("ssl://h:9/bootstrap", handshake + "tlsv1 alert unknown ca: SSL alert number 48", .clientCertificate, "h:9"),
        (
            "ssl://h:9/bootstrap", handshake + "sslv3 alert bad certificate: SSL alert number 42", .clientCertificate,
            "h:9"
        ),
        (
            "ssl://h:9/bootstrap", handshake + "sslv3 alert handshake failure: SSL alert number 40", .clientCertificate,
            "h:9"
        ),
        (
            "sasl_ssl://h:9/bootstrap",
            "Receive failed: SSL transport error: error:0A00045C:SSL routines::tlsv13 alert certificate required: "
                + "SSL alert number 116", .clientCertificate, "h:9"
        ),
        (
            "ssl://h:9/bootstrap",
            "Disconnected while requesting ApiVersion: might be caused by incorrect security.protocol configuration "
                + "(connecting to a SSL listener?) or broker version is < 0.10 (see api.version.request)", .closed,
            "h:9"
        ),
        ("h:9/1", "something new", .other, "h:9"),
    ]) func aLineSaysTheCause(name: String, text: String, cause: BrokerFailure.Cause, address: String) throws {
        let failure = try #require(BrokerFailure(line: "[thrd:\(name)]: \(name): \(text) (after 5ms in state CONNECT)"))
        #expect(failure.cause == cause)
        #expect(failure.address == address)
        #expect(!failure.description.contains("(after"))
        for word in ["broker version", "ssl routines", "receive.message", "security.protocol", "current sasl state"]
        where failure.cause != .other {
            #expect(!failure.description.lowercased().contains(word), "a guess that misleads, or a name from inside")
        }
    }

    @Test func theMechanismsThatItKnowsAreListed() throws {
        let failure = try #require(
            BrokerFailure(
                line: "[thrd:a:1/1]: a:1/1: SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: "
                    + "broker's supported mechanisms: SCRAM-SHA-256,SCRAM-SHA-512 (after 5ms in state AUTH_HANDSHAKE)"))
        #expect(
            failure.words
                == "it does not know the SASL mechanism (KAFKA_SASL_MECHANISM); it knows SCRAM-SHA-256, SCRAM-SHA-512")
    }

    @Test(arguments: [
        (Int32(20), BrokerFailure.Cause.unknownAuthority), (18, .unknownAuthority), (10, .certificateOver),
        (62, .wrongHostName), (26, .certificateRefused),
    ]) func aRefusedCertificateIsNamed(number: Int32, cause: BrokerFailure.Cause) {
        let trouble = BrokerTrouble(bootstrapServers: "h:9")
        trouble.note(certificateError: number, of: "h:9")
        trouble.note(
            line: "[thrd:ssl://h:9/bootstrap]: ssl://h:9/bootstrap: \(Self.verify) (after 3ms in state SSL_HANDSHAKE)")
        #expect(trouble.newest?.cause == cause)
    }

    @Test func theNewestCauseCounts() {
        let trouble = BrokerTrouble(bootstrapServers: "a:1,b:2")
        let error = KafkaError(code: KafkaError.Code.transport)
        let silence = "Kafka at a:1,b:2: no answer"
        #expect(trouble.explain(error).description == silence)
        for (address, text) in [("a:1", "Connect to x failed: Connection refused"), ("b:2", "Disconnected")] {
            trouble.note(line: "[thrd:\(address)/bootstrap]: \(address)/bootstrap: \(text)")
        }
        #expect(trouble.explain(error).failure?.cause == .closed)
        let other = KafkaError(code: KafkaError.Code.messageTooLarge)
        #expect(trouble.explain(other) == other)
        // The same one would not be told again yet.
        trouble.isOver()
        #expect(trouble.explain(error).failure?.cause == .closed)
    }

    @Test func nobodyBlamesTheBrokerForAMissingToken() {
        let trouble = BrokerTrouble(bootstrapServers: "a:1", lacksToken: true)
        #expect(trouble.failure.cause == .noToken)
    }
}
