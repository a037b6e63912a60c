// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Testing
import WireJSON

/// A message as a signed record, as services, gateway and tools write it.
@Suite struct SealTests {
    private static let key = SymmetricKey(data: Array("the-secret-of-the-tests".utf8))

    private func record(_ seal: Seal) throws -> Record {
        var attributes = EventAttributes(id: "c1", source: "test", type: LinkRequest.type, appID: "demo")
        attributes.partitionKey = "demo/anna"
        return try seal.record(
            to: "identity.link.commands.v1", key: Array("demo/anna".utf8), attributes,
            LinkRequest(installId: "i1", externalId: "anna"), traceParent: "x")
    }

    private func isSigned(_ record: Record, as id: String, with key: SymmetricKey) throws -> Bool {
        let headers = record.headers.filter { $0.name == HeaderName.signature }
        let signature = try #require(Signature(header: headers.first?.value ?? []))
        let signed = Signature.signingString(
            topic: record.topic, headers: record.headers, value: record.value ?? [])
        return headers.count == 1 && signature.keyID == id && signature.isValid(secret: key, signingString: signed)
    }

    @Test func sealsAMessage() throws {
        let record = try record(Seal("demo-backend", Self.key))
        #expect(record.topic == "identity.link.commands.v1" && record.key == Array("demo/anna".utf8))
        #expect(record.headers.map(\.name) == [HeaderName.contentType, "traceparent", HeaderName.signature])
        #expect(try isSigned(record, as: "demo-backend", with: Self.key))
        let event = try EnvelopeReader.read(value: record.value, headers: record.headers)
        #expect(event.attributes.partitionKey == "demo/anna")
        #expect(event.data == ["installId": "i1", "externalId": "anna"])
        #expect(try self.record(Seal("demo-backend", Self.key)) == record)
    }

    @Test func withoutAKeyNothingIsSigned() throws {
        let record = try record(Seal("internal", nil))
        #expect(record.headers.map(\.name) == [HeaderName.contentType, "traceparent"])
    }

    @Test func anotherSealTakesThePlaceOfTheFirst() throws {
        let other = SymmetricKey(data: Array("another-secret-of-the-tests".utf8))
        var record = try record(Seal("events", Self.key))
        record.topic = "identity.replies.v1"
        let again = Seal("gateway", other).signed(record)
        #expect(try isSigned(again, as: "gateway", with: other))
        #expect(again.value == record.value)
        #expect(again.headers.dropLast() == record.headers.dropLast())
    }
}
