// SPDX-License-Identifier: Apache-2.0

import Contracts
import Supervision
import Testing
import WireJSON

/// What people see of records that others wrote.
@Suite struct RecordLineTests {
    private func record(_ type: String, _ data: JSONValue) throws -> KafkaRecord {
        let attributes = EventAttributes(id: "c1", source: "test", type: type, appID: "demo")
        let value = try CloudEvent(attributes: attributes, data: data).encoded()
        return KafkaRecord(
            topicPartition: TopicPartition(topic: "t", partition: 0), offset: 0, key: nil, value: value)
    }

    private let secrets: [(String, JSONValue)] = [
        (
            "identity.reply.v1",
            [
                "commandId": "c1", "commandType": "identity.user.request-auth-code.v1", "commandDigest": "d",
                "status": "succeeded",
                "result": ["authenticationCode": "the-secret", "expiresAt": "soon"],
            ]
        ),
        (
            "identity.reply.v1",
            [
                "commandId": "c1", "commandType": "identity.user.get.v1", "commandDigest": "d", "status": "succeeded",
                "result": ["userId": "u", "token": ["tokenId": "the-secret", "expiryDate": "soon"]],
            ]
        ),
        ("identity.user.create.v1", ["installId": "i", "appSecret": "the-secret", "authCode": "the-secret"]),
    ]

    @Test func secretsAreHiddenUnlessAskedFor() throws {
        for (type, data) in secrets {
            let record = try record(type, data)
            for line in [RecordLine().text(record), RecordLine().json(record)] {
                #expect(!line.contains("the-secret") && line.contains("\u{2039}hidden\u{203A}"))
            }
            let open = RecordLine(showsSecrets: true)
            #expect(open.text(record).contains("the-secret") && open.json(record).contains("the-secret"))
        }
    }

    @Test func nothingSteersTheTerminal() throws {
        let nasty = "\u{1B}[2J\u{1B}]0;owned\u{7}\n\u{9B}31m\u{2028}\u{2029}\u{202E}\u{2066}\u{61C}"
        let event = try record("identity.sync.x.v1", ["context": .string(nasty), "\(nasty)": "b"])
        let letter = KafkaRecord(
            topicPartition: TopicPartition(topic: "t", partition: 0), offset: 0, key: Array(nasty.utf8), value: nil,
            headers: [
                Header("dlq_reason", Array(nasty.utf8)),
                Header("dlq_error", Array(nasty.utf8)),
            ])
        for record in [event, letter] {
            for line in [RecordLine().text(record), RecordLine().json(record)] {
                let isHarmless = line.unicodeScalars.allSatisfy { scalar in
                    !(0..<0x20).contains(scalar.value) && !(0x7F..<0xA0).contains(scalar.value)
                        && ![0x2028, 0x2029, 0x202E, 0x2066, 0x61C].contains(scalar.value)
                }
                #expect(isHarmless)
            }
            // Still the same JSON.
            #expect(throws: Never.self) { try JSONValue(parsing: Array(RecordLine().json(record).utf8)) }
        }
        let value = try JSONValue(parsing: Array(RecordLine().json(event).utf8))["value"]
        #expect(value?["data"]?["context"]?.stringValue == nasty)
    }

    @Test func aDryRunIsToldApart() throws {
        let data: JSONValue = [
            "commandId": "c1", "commandType": "identity.link.request.v1", "commandDigest": "d", "status": "succeeded",
            "dryRun": true,
        ]
        #expect(RecordLine().text(try record("identity.reply.v1", data)).contains("  dry run"))
    }

    @Test func aLineTellsWhenWhatAndOfWhichCommand() throws {
        var reply = try record(
            "identity.reply.v1",
            [
                "commandId": "c1", "commandType": "identity.link.request.v1", "commandDigest": "d",
                "status": "rejected", "reason": "INSTALL_NOT_FOUND", "message": "There is no such install.",
            ])
        reply.timestampMs = 1_900_000_000_123
        reply.key = Array("demo/ada".utf8)
        let rest = "link.request                  demo/ada        INSTALL_NOT_FOUND: There is no such install.  id c1"
        let sameDay = RecordLine(now: Timestamp(milliseconds: 1_900_000_000_000))
        #expect(sameDay.text(reply) == "17:46:40.123Z  NO       \(rest)")
        let later = RecordLine(isColoured: true, now: Timestamp(milliseconds: 1_900_000_000_000 + 86_400_000))
        #expect(later.text(reply) == "2030-03-17 17:46:40.123Z  \u{1B}[33mNO      \u{1B}[0m \(rest)")
        #expect(RecordLine().json(reply).contains(#""timestamp":"2030-03-17T17:46:40.123Z""#))
    }
}
