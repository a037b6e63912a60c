// SPDX-License-Identifier: Apache-2.0

import Testing
import WireJSON

@testable import Contracts

/// What a replica says of itself (docs/contracts.md "Status").
extension GoldenTests {
    static let replicaStatus = ReplicaStatus(
        service: "link", replica: "host-1:4711", version: "0.1.0", commit: "ee4b8bb5",
        startedAt: Timestamp(milliseconds: 1_795_251_844_031), isReady: false,
        failing: [.init(name: "database", detail: "PostgreSQL db:5432: connection refused")],
        apps: .init(digest: "4fe1c2d3", isValid: true), partitions: 12, waiting: 3, oldestSeconds: 0.25,
        decided: .init(
            seconds: 10.002, outcomes: ["succeeded": 41, "rejected": 1], reasons: ["INSTALL_NOT_FOUND": 1],
            commitMilliseconds: 3.25),
        deadLetters: .init(open: 2, oldestSeconds: 60))

    static let statusSamples: [Sample] = [
        message("status", replicaStatus),
        message(
            "status-gateway",
            ReplicaStatus(
                service: "gateway", replica: "host-1:4712", version: "0.1.0", commit: "ee4b8bb5",
                startedAt: Timestamp(milliseconds: 1_795_251_844_031), isReady: true,
                apps: .init(digest: "4fe1c2d3", isValid: true), partitions: 0, waiting: 3)),
    ]
}

@Suite struct StatusMessageTests {
    @Test func theRecordReplacesTheOneBefore() throws {
        let record = try GoldenTests.replicaStatus.record(to: "identity.status.v1", id: "s1", now: .now)
        #expect(record.key == Array("link/host-1:4711".utf8))
        let event = try JSONValue(parsing: try #require(record.value))
        #expect(event["type"]?.stringValue == ReplicaStatus.type && event["appid"] == nil)
        #expect(event["source"] == "identitybus/link" && event["subject"] == "link/host-1:4711")
    }

    /// Ten seconds of a replica with every reason there is.
    @Test func itIsSmall() throws {
        var status = GoldenTests.replicaStatus
        status.decided?.reasons = Dictionary(uniqueKeysWithValues: ReasonCode.allCases.map { ($0.rawValue, 1_000_000) })
        #expect(try WireJSONEncoder().encode(status).count < 4096)
    }
}
