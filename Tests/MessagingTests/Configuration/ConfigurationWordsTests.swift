// SPDX-License-Identifier: Apache-2.0

import Foundation
import Messaging
import Testing

/// What makes a client impossible is told before any is made: which variable, and what is wrong with it.
@Suite struct ConfigurationWordsTests {
    private func problem(_ settings: [String: String]) -> KafkaConfigurationError? {
        do {
            _ = try KafkaConfiguration(environment: ["KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"].merging(settings) { $1 })
            return nil
        } catch {
            return error
        }
    }

    /// In a folder of its own, which goes away again.
    private func withFile(_ content: String, _ body: (String) throws -> Void) throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "words-\(UUID().uuidString).pem")
        try Data(content.utf8).write(to: path)
        defer { try? FileManager.default.removeItem(at: path) }
        try body(path.path)
    }

    @Test(arguments: [
        "KAFKA_SSL_CA_LOCATION", "KAFKA_SSL_CERTIFICATE_LOCATION", "KAFKA_SSL_KEY_LOCATION", "KAFKA_SSL_CRL_LOCATION",
        "KAFKA_SSL_KEYSTORE_LOCATION", "KAFKA_PRODUCER_SSL_CA_LOCATION", "KAFKA_CONSUMER_SSL_KEY_LOCATION",
    ]) func aFileThatIsMissingIsNamed(variable: String) {
        let settings = [variable: "/no/such/file.pem", "KAFKA_SECURITY_PROTOCOL": "SSL"]
        #expect(
            problem(settings)?.description == "\(variable): /no/such/file.pem cannot be read: no such file or directory"
        )
    }

    @Test func aCertificateWithoutItsKeyIsTold() throws {
        try withFile("") { path in
            let settings = ["KAFKA_SSL_CERTIFICATE_LOCATION": path, "KAFKA_SECURITY_PROTOCOL": "SSL"]
            #expect(
                problem(settings)?.description
                    == "KAFKA_SSL_KEY_LOCATION: is not set, and KAFKA_SSL_CERTIFICATE_LOCATION is; it names the file of its key"
            )
        }
        let settings = [
            "KAFKA_PRODUCER_SSL_CERTIFICATE_PEM": "x", "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "a", "KAFKA_SASL_PASSWORD": "b",
        ]
        #expect(
            problem(settings)?.description
                == "KAFKA_PRODUCER_SSL_KEY_PEM: is not set, and KAFKA_PRODUCER_SSL_CERTIFICATE_PEM is; it is its key")
    }

    /// The key itself in the place of its path.
    @Test func whatIsNoPathIsNotShown() {
        let pem = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----"
        let words = problem(["KAFKA_SSL_KEY_LOCATION": pem, "KAFKA_SECURITY_PROTOCOL": "SSL"])?.description ?? ""
        #expect(words.hasPrefix("KAFKA_SSL_KEY_LOCATION: is the text of a PEM file") && !words.contains("hunter2"))
    }

    @Test func aFolderIsNoFile() {
        let settings = ["KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_KEY_LOCATION": "/tmp"]
        #expect(problem(settings)?.description == "KAFKA_SSL_KEY_LOCATION: /tmp cannot be read: is a directory")
        #expect(problem(["KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_CA_LOCATION": "/tmp"]) == nil)
    }

    @Test(arguments: [
        ("KAFKA_SSL_CA_LOCATION", "holds no certificate in PEM form"),
        ("KAFKA_SSL_CERTIFICATE_LOCATION", "holds no certificate in PEM form"),
        (
            "KAFKA_SSL_KEY_LOCATION",
            "holds no private key in PEM form, or one that needs another KAFKA_SSL_KEY_PASSWORD"
        ),
        ("KAFKA_SSL_CRL_LOCATION", "holds no list of revoked certificates in PEM form"),
    ]) func aFileThatHoldsSomethingElseIsNamed(variable: String, words: String) throws {
        try withFile("garbage\n") { path in
            var settings = [variable: path, "KAFKA_SECURITY_PROTOCOL": "SSL"]
            // One without its key is told before it is read.
            if variable == "KAFKA_SSL_CERTIFICATE_LOCATION" { settings["KAFKA_SSL_KEY_LOCATION"] = path }
            #expect(problem(settings)?.description == "\(variable): \(path) \(words)")
        }
    }

    @Test(arguments: [
        (["KAFKA_SASL_MECHANISM": "FOO"], "KAFKA_SASL_MECHANISM: FOO is not one of"),
        (["KAFKA_SASL_MECHANISM": "plain"], "KAFKA_SASL_MECHANISM: plain is not one of"),
        (["KAFKA_SASL_MECHANISMS": "FOO"], "KAFKA_SASL_MECHANISMS: FOO is not one of"),
        (
            [
                "KAFKA_PRODUCER_SASL_MECHANISM": "FOO", "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "a",
                "KAFKA_SASL_PASSWORD": "b",
            ], "KAFKA_PRODUCER_SASL_MECHANISM: FOO is not one of"
        ),
        ([:], "KAFKA_SASL_MECHANISM: is not set, and KAFKA_SECURITY_PROTOCOL asks for SASL; it is one of"),
        (["KAFKA_SASL_MECHANISM": "PLAIN"], "KAFKA_SASL_USERNAME: is not set, and PLAIN needs it"),
        (
            ["KAFKA_SASL_MECHANISM": "SCRAM-SHA-512", "KAFKA_SASL_USERNAME": "a"],
            "KAFKA_SASL_PASSWORD: is not set, and SCRAM-SHA-512 needs it"
        ),
    ]) func signingInThatIsIncompleteIsNamed(settings: [String: String], words: String) {
        for value in ["SASL_PLAINTEXT", "sasl_ssl"] {
            let problem = problem(settings.merging(["KAFKA_SECURITY_PROTOCOL": value]) { $1 })
            #expect(problem?.description.hasPrefix(words) == true, "\(problem?.description ?? "accepted")")
        }
    }

    @Test func theProtocolIsOneOfFour() {
        #expect(
            problem(["KAFKA_SECURITY_PROTOCOL": "SSLX"])?.description
                == "KAFKA_SECURITY_PROTOCOL: SSLX is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL")
        #expect(problem(["KAFKA_SECURITY_PROTOCOL": "ssl"]) == nil)
    }

    /// Who gives them believes that somebody signs in, or that nobody can listen.
    @Test(arguments: [
        (
            ["KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "me", "KAFKA_SASL_PASSWORD": "hunter2"],
            "is not set, and PLAINTEXT does not use KAFKA_SASL_MECHANISM, KAFKA_SASL_PASSWORD, KAFKA_SASL_USERNAME: "
                + "set it to SASL_PLAINTEXT or SASL_SSL, or leave those out"
        ),
        (
            ["KAFKA_SASL_USERNAME": "me", "KAFKA_SECURITY_PROTOCOL": "ssl"],
            "is ssl, which does not use KAFKA_SASL_USERNAME: set it to SASL_SSL, or leave that out"
        ),
        (
            ["KAFKA_SSL_CA_LOCATION": "/no/such/file.pem"],
            "is not set, and PLAINTEXT does not use KAFKA_SSL_CA_LOCATION: set it to SSL or SASL_SSL, or leave that out"
        ),
        (
            ["KAFKA_PRODUCER_SSL_CA_LOCATION": "/tmp", "KAFKA_SECURITY_PROTOCOL": "PLAINTEXT"],
            "is PLAINTEXT, which does not use KAFKA_PRODUCER_SSL_CA_LOCATION: set it to SSL or SASL_SSL, or leave that out"
        ),
        (
            [
                "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "me", "KAFKA_SASL_PASSWORD": "hunter2",
                "KAFKA_SSL_CA_LOCATION": "/tmp", "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            ],
            "is SASL_PLAINTEXT, which does not use KAFKA_SSL_CA_LOCATION: set it to SASL_SSL, or leave that out"
        ),
    ]) func whatTheProtocolDoesNotUseIsNamed(settings: [String: String], words: String) {
        #expect(problem(settings)?.description == "KAFKA_SECURITY_PROTOCOL: \(words)")
    }

    @Test func settingsThatDoNotGoTogetherAreToldAtOnce() {
        let problem = problem(["KAFKA_CONSUMER_RECEIVE_MESSAGE_MAX_BYTES": "1000"])
        #expect(
            problem?.variable == "KAFKA_CONSUMER_RECEIVE_MESSAGE_MAX_BYTES", "\(problem?.description ?? "accepted")")
    }

    @Test(arguments: [
        "foo bar:9092", "kafka:x", "kafka:0", "kafka:70000", "http://kafka:9092", "[::1:9092", ":9092", "a:1,b:x", ",",
        // librdkafka would take 9092, which Kafka's own clients do not; an address of IPv6 stands in brackets.
        "kafka", "a:1, kafka", "[::1]", "PLAINTEXT://kafka", "kafka:", "::1", "::1:9092",
    ])
    func anAddressThatIsNoneIsNamed(servers: String) {
        let problem = problem(["KAFKA_BOOTSTRAP_SERVERS": servers])
        #expect(problem?.variable == "KAFKA_BOOTSTRAP_SERVERS")
        #expect(problem?.message.contains("host:port") == true, "\(problem?.description ?? "accepted")")
    }

    @Test func theEntryThatIsNoneIsQuoted() {
        #expect(
            problem(["KAFKA_BOOTSTRAP_SERVERS": "a:1,kafka"])?.description
                == "KAFKA_BOOTSTRAP_SERVERS: 'kafka' is not host:port, such as localhost:9092; several have commas between them"
        )
    }

    @Test(arguments: [
        "kafka:9092", "a.b-c:1, 10.0.0.1:2", "[::1]:9092", "PLAINTEXT://kafka:9092", "kafka_1:9092",
    ])
    func anAddressMayLookLikeThis(servers: String) {
        #expect(problem(["KAFKA_BOOTSTRAP_SERVERS": servers]) == nil)
    }
}
