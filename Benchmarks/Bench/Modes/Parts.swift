// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import WireJSON

/// What is done with every link command whatever the store, alone, on one thread, per second. The JSON is this project's
/// codec: how fast it is, not how fast JSON can be.
struct Parts {
    let signatures: Double
    let decoding: Double
    let encoding: Double

    static func run(_ options: BenchCommand) throws -> Parts {
        let factory = CommandFactory(topics: Topics())
        let values = try (0..<2000).compactMap { number in
            try factory.record(LinkWorkload.request(install: number, person: number), id: CommandFactory.id(number))
                .value
        }
        let key = SymmetricKey(data: Array(Stage.keySecret.utf8))
        let request = CommandType(LinkRequest.self)
        return Parts(
            signatures: rate(of: values.count) {
                for value in values { _ = HMAC<SHA256>.authenticationCode(for: value, using: key) }
            },
            decoding: try rate(of: values.count) {
                for value in values {
                    let event = try EnvelopeReader.read(value: value, headers: [])
                    guard request.partitionSubject(of: event.data) != nil else { throw BenchError("no subject") }
                }
            },
            encoding: try encoding())
    }

    private static func encoding() throws -> Double {
        let encoder = WireJSONEncoder()
        var attributes = EventAttributes(
            id: "8e0c5f52-1b6d-4a3e-9a57-2f60d17c4388", source: "identitybus/link", type: "identity.reply.v1",
            appID: Stage.app.text, time: "2026-01-02T03:04:05.678Z")
        attributes.correlationID = "command-1"
        attributes.causationID = "command-1"
        let result = LinkResult(
            userId: "0123456789abcdef01234567", installId: UserWorkload.installID(1), isActive: true,
            personCreated: true, version: 1)
        return try rate(of: 1000) {
            for _ in 0..<1000 {
                let reply = Reply<RawJSON>(
                    commandId: "command-1", commandType: LinkRequest.type,
                    commandDigest: String(repeating: "0f", count: 32),
                    status: .succeeded,
                    result: RawJSON(try encoder.encode(result)))
                _ = try CloudEvent(attributes: attributes, data: reply).encoded()
            }
        }
    }

    func tell(_ report: inout Report) {
        report.add("HMAC-SHA256 of a command", signatures, "/s")
        report.add("our codec: read and decode a command", decoding, "/s")
        report.add("our codec: encode a reply", encoding, "/s")
    }
}
