// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime

@Suite struct ReceiptTests {
    private let vault = OutboxVault(Fixture.keys)
    private let key = CommandKey(app: "demo", source: "https://shop.example/backend", id: "5b3c0d0e-77aa-4b11-9c55")

    private func parts(_ receipt: Receipt) -> ReplyParts {
        ReplyParts(
            key: key, index: receipt.replyIndex, subject: receipt.subject, digest: String(repeating: "0f", count: 32),
            decidedAt: 1_770_000_000_123, id: key.id.text)
    }

    private func read(_ column: [UInt8]) throws -> (receipt: Receipt, isOpen: Bool) {
        try ReceiptCodec.decode(column, parts, packing: ReceiptPacking(), open: { _ in nil })
    }

    /// A reply as the link service writes it.
    private func linkReceipt() -> Receipt {
        let id = DerivedID.message(of: key, index: 1)
        let user = "6f1d2c3b4a5968778695a4b3"
        let value = """
            {"specversion":"1.0","id":"\(id)","source":"identitybus/link","type":"identity.reply.v1",\
            "subject":"customer-31337","time":"2026-02-02T02:40:00.123Z","datacontenttype":"application/json",\
            "appid":"demo","partitionkey":"demo/customer-31337","correlationid":"\(key.id)","causationid":"\(key.id)",\
            "data":{"commandId":"\(key.id)","commandType":"identity.link.request.v1",\
            "commandDigest":"\(String(repeating: "0f", count: 32))","status":"succeeded","result":{"userId":"\(user)",\
            "installId":"1c0ffee0-9d3b-4c55-8a11-7e57ab1e0042","isActive":true,"personCreated":true,"version":1}}}
            """
        var receipt = Receipt()
        (receipt.app, receipt.source, receipt.id) = (key.app.text, key.source.text, key.id.text)
        (receipt.type, receipt.subject) = ("identity.link.request.v1", "customer-31337")
        let data = """
            {"installId":"1c0ffee0-9d3b-4c55-8a11-7e57ab1e0042","externalId":"customer-31337","userId":"\(user)",\
            "personCreated":true,"activeInstallId":"1c0ffee0-9d3b-4c55-8a11-7e57ab1e0042","deactivatedInstallIds":[],\
            "version":1}
            """
        receipt.told = [Receipt.Told(role: .event, type: "identity.link.linked.v1", data: Array(data.utf8))]
        receipt.reply = OutboxRecord(
            .reply,
            Record(
                topic: "identity.replies.v1", key: Array("demo/customer-31337".utf8), value: Array(value.utf8),
                headers: [Header("content-type", "application/cloudevents+json")]))
        receipt.replyIndex = 1
        return receipt
    }

    @Test func aReplyComesOutAsItWentIn() throws {
        let receipt = linkReceipt()
        let column = try vault.close(receipt, parts(receipt))
        #expect(try read(column).receipt == receipt)
        // The store is paid for by the byte.
        #expect(column.count < 180, "\(column.count) bytes")
        // People are told all but the reply's id and the digest.
        let told = try Receipt(column: column, decidedAt: 1_770_000_000_123)
        #expect(told.told == receipt.told && told.id == receipt.id && told.source == receipt.source)
        let data = try #require(try JSONValue(parsing: told.reply?.value ?? [])["data"])
        #expect(data["commandId"]?.stringValue == key.id.text && data["commandDigest"]?.stringValue == "")
        #expect(data["result"]?["userId"]?.stringValue == "6f1d2c3b4a5968778695a4b3")
    }

    /// A reply names its own trace, so nothing more is kept; of what is not answered the id is.
    @Test func theTraceIsKeptOnce() throws {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        var attributes = EventAttributes(id: key.id.text, source: key.source.text, type: "t", appID: key.app.text)
        func size(_ messages: [OutboxRecord], _ index: Int?) throws -> (bytes: Int, trace: String?) {
            let receipt = Receipt(of: attributes, app: "demo", reason: nil, messages: messages, replyIndex: index)
            let column = try vault.close(receipt, parts(receipt))
            #expect(try read(column).receipt == receipt)
            return (column.count, try Receipt(column: column, decidedAt: 0).traceID)
        }
        let none = try size([], nil)
        var reply = try #require(linkReceipt().reply)
        reply.record.headers.append(Header(HeaderName.traceParent, "00-\(trace)-00f067aa0ba902b7-01"))
        let answered = try size([reply], 0)
        #expect(none.trace == nil && answered.trace == trace)
        attributes.traceParent = "00-\(trace)-00f067aa0ba902b7-01"
        #expect(try size([reply], 0) == answered)
        let unanswered = try size([], nil)
        #expect(unanswered.trace == trace)
        #expect(unanswered.bytes - none.bytes < 20, "\(unanswered.bytes - none.bytes) bytes")
    }

    /// Arbitrary bytes, control characters among them, and ids that stand where they should not.
    @Test(arguments: 0..<200 as Range<UInt64>) func anyContentComesOutAsItWentIn(_ number: UInt64) throws {
        let seed = testSeed &+ number
        var random = SplitMix64(seed: seed)
        func bytes(_ most: Int) -> [UInt8] {
            let limit: UInt8 = Bool.random(using: &random) ? 8 : 255
            return (0..<Int.random(in: 0...most, using: &random)).map { _ in
                UInt8.random(in: 0...limit, using: &random)
            }
        }
        func text(_ most: Int) -> String {
            let pieces = [
                key.id.text, "demo", "\u{1}", "\u{5}", "é", #"","data":"#, "2026-02-02T02:40:00.123Z", "x",
                "0123456789abcdef",
                "1c0ffee0-9d3b-4c55-8a11-7e57ab1e0042", "deadbeef-", "\u{6}", "\u{7}", "\u{e}",
            ]
            return (0..<Int.random(in: 0...most, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }.joined()
        }
        var receipt = Receipt()
        (receipt.app, receipt.source, receipt.id, receipt.type) = (text(2), text(3), text(2), text(3))
        receipt.subject = Bool.random(using: &random) ? nil : text(3)
        receipt.reason = Bool.random(using: &random) ? nil : text(3)
        receipt.told = (0..<Int.random(in: 0...3, using: &random)).map { _ in
            Receipt.Told(role: .command, type: text(2), data: bytes(300))
        }
        if Int.random(in: 0...4, using: &random) > 0 {
            let value = Bool.random(using: &random) ? Array(text(20).utf8) : bytes(5000)
            receipt.reply = OutboxRecord(
                .reply,
                Record(
                    topic: text(3), key: Bool.random(using: &random) ? nil : bytes(40),
                    value: Int.random(in: 0...9, using: &random) == 0 ? nil : value,
                    headers: [Header(text(2), bytes(20)), Header(text(2), nil)]),
                mayBeGivenUp: Bool.random(using: &random))
            receipt.replyIndex = Int.random(in: 0...300, using: &random)
        } else if Bool.random(using: &random) {
            receipt.trace = text(3)
        }
        let column = try vault.close(receipt, parts(receipt))
        #expect(try read(column).receipt == receipt, "seed \(seed)")
        // What was damaged is refused, or read as something; it never ends the process.
        for _ in 0..<10 {
            var damaged = column
            let place = Int.random(in: 0..<damaged.count, using: &random)
            damaged[place] ^= UInt8.random(in: 1...255, using: &random)
            _ = try? read(damaged)
            _ = try? read(Array(column.prefix(place)))
        }
    }

    @Test func aSecretIsEncryptedAndTheRestIsNot() throws {
        var receipt = linkReceipt()
        receipt.reply?.role = .confidentialReply
        let column = try vault.close(receipt, parts(receipt))
        #expect(try vault.reply(in: column, parts) == receipt.reply)
        let other = OutboxVault(DeploymentKeys(internalKeys: [SymmetricKey(size: .bits256)]))
        #expect(try other.reply(in: column, parts) == nil)
        let told = try Receipt(column: column, decidedAt: 0)
        #expect(told.reply?.value == nil && told.reply?.role == .confidentialReply)
        #expect(told.id == receipt.id && told.told == receipt.told)
    }

    /// What stands in stores is read with it.
    @Test func theDictionaryIsPartOfTheFormat() {
        let digest = SHA256.hash(data: ReceiptDictionary.bytes).map { String($0, radix: 16) }.joined()
        #expect(digest == "1997d1e0ac419b7260e35a8ab43d22b24e371b8ab0212a92fb946e2b53a337")
    }
}
