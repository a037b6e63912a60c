// SPDX-License-Identifier: Apache-2.0

import Apps
import Runtime
import Testing

@testable import CLI

/// What would stop a start, found before. That programs say the same is tried end to end, in test_settings.py.
@Suite struct SettingsReadingTests {
    private static let sound = [
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef0123456789abcdef",
    ]

    private func mistakes(_ change: [String: String], of program: String = "link") -> [String] {
        SettingsReading(Self.sound.merging(change) { $1 }.filter { !$0.value.isEmpty }, of: program).mistakes.map(
            \.variable)
    }

    @Test func aSoundEnvironmentHasNone() {
        for program in ["link", "user", "sync", "verification", "gateway"] { #expect(mistakes([:], of: program) == []) }
    }

    @Test(arguments: [
        ("LOOPS", ["LOOPS": "2"]), ("HTTP_HOST", ["HTTP_HOST": "nosuch.invalid"]),
        ("HTTP_HOST", ["HTTP_HOST": "192.0.2.1"]), ("KAFKA_BOOTSTRAP_SERVERS", ["KAFKA_BOOTSTRAP_SERVERS": "hunter2"]),
        ("TOPIC_PREFIX", ["TOPIC_PREFIX": "a b"]), ("REPLAY_UNTIL", ["REPLAY_UNTIL": "foo"]),
        ("REPLAY_UNTIL", ["REPLAY_UNTIL": "2999-01-31T12:00:00Z"]), ("IDENTITYBUS_SALTS", ["IDENTITYBUS_SALTS": "x"]),
        ("IDENTITYBUS_INTERNAL_KEY", ["IDENTITYBUS_INTERNAL_KEY": "short"]),
        ("IDENTITYBUS_INTERNAL_KEY", ["IDENTITYBUS_INTERNAL_KEY": ""]),
        ("IDENTITYBUS_PREVIOUS_INTERNAL_KEYS", ["IDENTITYBUS_PREVIOUS_INTERNAL_KEYS": "a,b"]),
        ("KAFKA_PRODUCER_ACKS", ["KAFKA_PRODUCER_ACKS": "1"]),
        ("KAFKA_PRODUCER_LINGER_MS", ["KAFKA_PRODUCER_LINGER_MS": "abc"]),
        ("KAFKA_CONSUMER_FOO", ["KAFKA_CONSUMER_FOO": "1"]),
        ("DATABASE_URL", ["DATABASE_URL": "postgresql://127.0.0.1/x?foo=1"]),
        (
            "KAFKA_SASL_MECHANISM",
            [
                "KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_MECHANISM": "FOO", "KAFKA_SASL_USERNAME": "me",
                "KAFKA_SASL_PASSWORD": "hush",
            ]
        ),
        (
            "KAFKA_SECURITY_PROTOCOL",
            [
                "KAFKA_SECURITY_PROTOCOL": "FOO", "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "me",
                "KAFKA_SASL_PASSWORD": "hush", "KAFKA_SSL_CA_LOCATION": "/none",
            ]
        ),
        (
            "KAFKA_SECURITY_PROTOCOL",
            [
                "KAFKA_SECURITY_PROTOCOL": "PLAINTEXT", "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "me",
                "KAFKA_SASL_PASSWORD": "hush", "KAFKA_SSL_CA_LOCATION": "/none",
            ]
        ),
        ("DATABASE_SCHEMA_PREFIX", ["DATABASE_SCHEMA_PREFIX": "1abc"]),
        ("DATA_DIR", ["DATA_DIR": "/etc/hosts"]), ("DATA_DIR", ["DATA_DIR": "/etc/hosts/store/"]),
        (
            "KAFKA_SSL_CERTIFICATE_LOCATION",
            [
                "KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_CERTIFICATE_LOCATION": "/none",
                "KAFKA_SSL_KEY_LOCATION": "/none",
            ]
        ),
    ])
    func oneDefectIsOneMistake(variable: String, change: [String: String]) {
        let found = mistakes(change)
        #expect(found.first == variable && found.count { $0 == variable } == 1)
        // Each is about what was set.
        #expect(found.allSatisfy { change[$0] != nil }, "\(found)")
    }

    @Test func ofTheGatewayTheHostsToo() {
        #expect(mistakes(["GATEWAY_HOST": "192.0.2.1"], of: "gateway") == ["GATEWAY_HOST"])
        #expect(
            mistakes(["GATEWAY_ADMIN_HOST": "192.0.2.1", "GATEWAY_ADMIN_PORT": "0"], of: "gateway")
                == ["GATEWAY_ADMIN_HOST"])
        #expect(mistakes(["ALIAS_DELAY": "soon"], of: "sync") == ["ALIAS_DELAY"])
        #expect(mistakes(["ALIAS_DELAY": "soon"], of: "link") == [])
    }

    @Test func severalDefectsAreSeveral() {
        let all = [
            "LOOPS": "2", "BATCH_SIZE": "x", "KAFKA_SASL_MECHANISM": "FOO", "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        ]
        #expect(Set(mistakes(all)) == ["LOOPS", "BATCH_SIZE", "KAFKA_SASL_MECHANISM"])
    }
}
