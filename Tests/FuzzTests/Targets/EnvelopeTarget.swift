// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import TestKit
import WireJSON

@testable import Gateway

/// Input: ``RecordText``.
enum EnvelopeTarget {
    static func run(_ bytes: [UInt8]) throws {
        let record = RecordText(bytes)
        let event: CloudEvent<JSONValue>
        do throws(EnvelopeError) {
            event = try EnvelopeReader.read(value: record.value, headers: record.headers)
        } catch {
            // The detail goes to dead letters and logs.
            return try hold(!error.detail.hasControlCharacter && !error.detail.isEmpty, "refused with: \(error.detail)")
        }
        // In binary mode the data may be one level deeper than an envelope can hold.
        guard !record.headers.contains(where: { $0.name == "ce_specversion" }) else { return }
        let again = try EnvelopeReader.read(value: try event.encoded(), headers: [])
        try hold(again == event, "what is written is another event")
        try reply(event, record.value ?? [])
    }

    /// The gateway reads replies by itself.
    private static func reply(_ event: CloudEvent<JSONValue>, _ value: [UInt8]) throws {
        let mine = CommandReply(envelope: value)
        guard event.attributes.type == ReceivedReply.type, let reply = ReceivedReply(event.data) else {
            return try hold(mine == nil, "the gateway takes it for a reply")
        }
        try hold(
            mine?.commandID == reply.commandId && mine?.digest == reply.commandDigest && mine?.status == reply.status
                && mine?.app.text == event.attributes.appID && mine?.isDryRun == reply.isDryRun,
            "the gateway reads another reply")
    }
}
