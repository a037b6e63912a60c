// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Messaging

@Suite struct TopicAuditTests {
    private let good = [
        "retention.ms": "1000", "max.message.bytes": "500", "min.insync.replicas": "2", "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
    ]

    private func findings(
        _ wanted: [String: String], _ changes: [String: String] = [:], replicas: Int = 3
    ) -> [String] {
        TopicSpec(name: "t", partitions: 1, config: wanted)
            .flaws(settings: good.merging(changes) { $1 }, copies: replicas).map(\.logged)
    }

    @Test func asMuchOrMoreIsRight() {
        #expect(findings([:]).isEmpty)
        #expect(findings(["retention.ms": "1000", "max.message.bytes": "500"]).isEmpty)
        #expect(findings(["retention.ms": "900", "max.message.bytes": "400"]).isEmpty)
        #expect(findings(["retention.ms": "5000"], ["retention.ms": "-1"]).isEmpty)
        #expect(findings(["retention.ms": "-1"], ["retention.ms": "-1"]).isEmpty)
    }

    @Test func lessIsWrong() {
        #expect(findings(["retention.ms": "1001"]) == ["retention.ms is 1000 and should be 1001 or more"])
        #expect(findings(["retention.ms": "-1"]) == ["retention.ms is 1000 and should be -1"])
        #expect(
            findings(["retention.bytes": "-1"], ["retention.bytes": "5"]) == ["retention.bytes is 5 and should be -1"])
        #expect(findings(["retention.bytes": "-1"], ["retention.bytes": "-1"]).isEmpty)
        #expect(findings([:], ["retention.bytes": "5"]).isEmpty)
        #expect(findings(["max.message.bytes": "501"]) == ["max.message.bytes is 500 and should be 501 or more"])
    }

    @Test func threeReplicasNeedTwoInSync() {
        let one = ["min.insync.replicas": "1"]
        #expect(findings([:], one) == ["min.insync.replicas is 1 and should be 2"])
        #expect(findings([:], one, replicas: 2).isEmpty)
    }

    @Test func aLogMustKeepAllItsMessages() {
        let compacted = ["cleanup.policy": "compact"]
        #expect(findings([:], compacted) == ["cleanup.policy is compact and should be delete"])
        #expect(findings(compacted, compacted).isEmpty)
    }

    @Test func theKindOfTimeMattersWhereItIsAskedFor() {
        #expect(
            findings(["message.timestamp.type": "LogAppendTime"])
                == ["message.timestamp.type is CreateTime and should be LogAppendTime"])
    }

    @Test func peopleReadWhatMayComeOfIt() {
        let wanted = [
            "retention.ms": "1209600000", "max.message.bytes": "2000000", "message.timestamp.type": "LogAppendTime",
        ]
        let settings = [
            "retention.ms": "172800000", "max.message.bytes": "1048588", "min.insync.replicas": "1",
            "cleanup.policy": "compact", "message.timestamp.type": "CreateTime",
        ]
        let words = TopicSpec(name: "t", partitions: 1, config: wanted).flaws(settings: settings, copies: 3).map(
            \.words)
        #expect(
            words == [
                "retention 2 d, wants 14 d: what nobody has read by then is lost",
                "max.message.bytes 1.0 MB, wants 2.0 MB: Kafka refuses what is larger",
                "min.insync.replicas 1, wants 2: an acknowledged message can be lost with one broker",
                "cleanup.policy compact, wants delete: records go that nobody has read",
                "time by sender, wants broker: a sender's wrong clock makes the inbox forget too early or too late",
            ])
    }

    @Test(arguments: [("-1", "for ever"), ("3600000", "1 h"), ("129600000", "36 h"), ("90000", "90 s"), ("5", "5 ms")])
    func timesAreRound(_ milliseconds: String, _ words: String) {
        #expect(TopicSpec.time(milliseconds) == words)
    }
}
