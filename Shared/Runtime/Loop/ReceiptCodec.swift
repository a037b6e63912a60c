// SPDX-License-Identifier: Apache-2.0

import CZlib
import Contracts
import Storage
import WireJSON

/// The inbox's `receipt` column. Its first byte says what follows: 3 a receipt, packed (``HexPacking``) and deflated with
/// ``ReceiptDictionary``; 4 the same, with the reply's value (a secret) encrypted behind it; 1 and 2 all messages of the
/// command, as the journal of earlier versions kept them (``OutboxCodec``).
enum ReceiptCodec {
    private static let plain: UInt8 = 3
    private static let confidential: UInt8 = 4

    /// - Parameters:
    ///   - parts: what follows from the command.
    ///   - seal: encrypts a secret.
    static func encode(
        _ receipt: Receipt, _ parts: ReplyParts, deflater: Deflater, seal: ([UInt8]) throws -> [UInt8]
    ) throws -> [UInt8] {
        var text = Writer()
        for field in [receipt.app, receipt.source, receipt.id, receipt.type] { text.write(field) }
        text.write(receipt.subject)
        text.write(receipt.reason)
        text.write(receipt.told.count)
        for told in receipt.told {
            text.write(Int(told.role.rawValue))
            text.write(told.type)
            text.write(bytes: told.data)
        }
        var secret: [UInt8]?
        if let reply = receipt.reply {
            text.write(Int(reply.role.rawValue) << 1 | (reply.mayBeGivenUp ? 1 : 0))
            text.write(receipt.replyIndex)
            text.write(reply.topic)
            text.write(bytes: reply.key)
            text.write(reply.headers.count)
            for header in reply.headers {
                text.write(bytes: header.rawName ?? Array(header.name.utf8))
                text.write(bytes: header.value)
            }
            let shortened = reply.value.flatMap { parts.removed(from: $0) }
            text.write(shortened == nil ? 0 : 1)
            let value = shortened ?? reply.value
            if reply.role == .confidentialReply, let value {
                secret = try seal(value)
            } else {
                text.write(bytes: value)
            }
        } else {
            text.write(0)
        }
        guard let secret else { return deflater.deflate(HexPacking.packed(text.bytes), after: [plain]) }
        var head = Writer()
        let deflated = deflater.deflate(HexPacking.packed(text.bytes), after: [])
        head.bytes.append(confidential)
        head.write(bytes: deflated)
        return head.bytes + secret
    }

    /// - Parameters:
    ///   - parts: what follows from the command; it is given the index of the reply and the subject.
    ///   - open: decrypts a secret; `nil` when no key of now can.
    /// - Returns: the receipt, and whether all of it could be read: not so when it holds a secret that cannot be opened.
    /// - Throws: `OutboxCodec.Corrupted`.
    static func decode(
        _ bytes: [UInt8], _ parts: (Receipt) -> ReplyParts, open: ([UInt8]) -> [UInt8]?
    ) throws(OutboxCodec.Corrupted) -> (receipt: Receipt, isOpen: Bool) {
        var deflated = bytes.dropFirst()
        var secret: ArraySlice<UInt8>?
        if bytes.first == confidential {
            var head = Reader(bytes: deflated)
            guard let text = try head.bytes() else { throw OutboxCodec.Corrupted() }
            (deflated, secret) = (ArraySlice(text), head.rest)
        } else if bytes.first != plain {
            return (try legacy(bytes), true)
        }
        var text = Reader(bytes: ArraySlice(try HexPacking.unpacked(Inflater.inflate(Array(deflated)))))
        var receipt = Receipt()
        (receipt.app, receipt.source) = (try text.required(), try text.required())
        (receipt.id, receipt.type) = (try text.required(), try text.required())
        (receipt.subject, receipt.reason) = (try text.text(), try text.text())
        for _ in 0..<(try text.count()) {
            guard let role = OutboxRecord.Role(rawValue: UInt8(truncatingIfNeeded: try text.number())) else {
                throw OutboxCodec.Corrupted()
            }
            receipt.told.append(
                Receipt.Told(role: role, type: try text.required(), data: try text.bytes() ?? []))
        }
        let kind = try text.number()
        guard kind != 0 else { return (receipt, true) }
        guard let role = OutboxRecord.Role(rawValue: UInt8(truncatingIfNeeded: kind >> 1)) else {
            throw OutboxCodec.Corrupted()
        }
        receipt.replyIndex = try text.number()
        var record = Record(topic: try text.required(), key: try text.bytes(), value: nil, headers: [])
        for _ in 0..<(try text.count()) {
            guard let name = try text.bytes() else { throw OutboxCodec.Corrupted() }
            record.headers.append(Header(nameBytes: name, try text.bytes()))
        }
        let isShortened = try text.number() == 1
        var isOpen = true
        if let secret {
            record.value = open(Array(secret))
            isOpen = record.value != nil
        } else {
            record.value = try text.bytes()
        }
        if isShortened, let value = record.value { record.value = parts(receipt).restored(in: value) }
        receipt.reply = OutboxRecord(role, record, mayBeGivenUp: kind & 1 == 1)
        return (receipt, isOpen)
    }

    /// What is left of a row of the journal: who sent the command is not in it.
    private static func legacy(_ bytes: [UInt8]) throws(OutboxCodec.Corrupted) -> Receipt {
        let messages = try OutboxCodec.decode(bytes)
        var receipt = Receipt()
        receipt.told = messages.compactMap { $0.role == .event || $0.role == .command ? Receipt.Told($0) : nil }
        // The reply is the last message; what stands before it answers other commands.
        if let last = messages.last, last.isReply { receipt.reply = last }
        for message in messages {
            guard let event = try? EnvelopeReader.read(value: message.value, headers: []) else { continue }
            receipt.app = event.attributes.appID ?? ""
            receipt.id = event.attributes.causationID ?? ""
            if message.isReply {
                receipt.subject = event.attributes.subject
                receipt.type = event.data["commandType"]?.stringValue ?? ""
            }
        }
        return receipt
    }

    // MARK: Parts

    private struct Writer {
        var bytes: [UInt8] = []

        /// Seven bits a byte, the lowest first.
        mutating func write(_ number: Int) {
            var rest = UInt64(number)
            while rest > 127 {
                bytes.append(UInt8(rest & 127) | 128)
                rest >>= 7
            }
            bytes.append(UInt8(rest))
        }

        mutating func write(_ text: String?) {
            guard let text else { return write(0) }
            write(text.utf8.count + 1)
            bytes.append(contentsOf: text.utf8)
        }

        mutating func write(bytes part: [UInt8]?) {
            guard let part else { return write(0) }
            write(part.count + 1)
            bytes.append(contentsOf: part)
        }
    }

    private struct Reader {
        private var left: ArraySlice<UInt8>

        init(bytes: ArraySlice<UInt8>) { left = bytes }

        var rest: ArraySlice<UInt8> { left }

        mutating func number() throws(OutboxCodec.Corrupted) -> Int {
            var number: UInt64 = 0
            for shift in stride(from: UInt64(0), to: 35, by: 7) {
                guard let byte = left.popFirst() else { throw OutboxCodec.Corrupted() }
                number |= UInt64(byte & 127) << shift
                if byte < 128 { return Int(number) }
            }
            throw OutboxCodec.Corrupted()
        }

        /// How many parts follow; each has a byte at least.
        mutating func count() throws(OutboxCodec.Corrupted) -> Int {
            let count = try number()
            guard count <= left.count else { throw OutboxCodec.Corrupted() }
            return count
        }

        mutating func bytes() throws(OutboxCodec.Corrupted) -> [UInt8]? {
            let count = try number() - 1
            guard count >= 0 else { return nil }
            guard count <= left.count else { throw OutboxCodec.Corrupted() }
            defer { left = left.dropFirst(count) }
            return Array(left.prefix(count))
        }

        mutating func text() throws(OutboxCodec.Corrupted) -> String? {
            guard let part = try bytes() else { return nil }
            guard let text = String(validating: part, as: UTF8.self) else { throw OutboxCodec.Corrupted() }
            return text
        }

        mutating func required() throws(OutboxCodec.Corrupted) -> String {
            guard let text = try text() else { throw OutboxCodec.Corrupted() }
            return text
        }
    }
}

/// What receipts of this product look like. It is part of the format: with another text, what was written is not read
/// any more. (A new dictionary is a new first byte.)
enum ReceiptDictionary {
    static let bytes = Array(
        #"""
        ,"traceparent":"00--01","tracestate":"INSUFFICIENT_SCOPE INVALID_REQUEST ID_REUSED \#
        "isEphemeral":false,"isLoggedIn":true,"matchedIdentities":["type":"customer_id","value":""email","value":"\#
        "currentMPID":"previousMPID":"mpid":"rule":"created"matched"identities":[{"\#
        "status":"pending""status":"expired","message":"\#
        "status":"rejected","reason":"INSTALL_NOT_FOUND","message":"\#
        identity.verification.login.v1identity.verification.check.v1identity.verification.verified.v1\#
        identity.sync.identify.v1identity.sync.login.v1identity.sync.logout.v1identity.sync.modify.v1\#
        identity.sync.profile-created.v1identity.sync.identities-changed.v1identity.sync.current-user-changed.v1\#
        identity.user.create.v1identity.user.reset.v1identity.user.created.v1identity.user.activated.v1\#
        identity.link.register-install.v1identity.link.set-install-status.v1identity.link.install-registered.v1\#
        identity.link.establish.v1identity.link.refused.v1identity.link.request.v1\#
        identity.link.install-superseded.v1identitybus/useridentitybus/verification\#
        "kind":"phone","platform":"ios","android","isActive":false,"personCreated":false,"version":2\#
        identity.link.linked.v1{"installId":"","externalId":"","userId":"\#
        ","personCreated":true,"activeInstallId":"","deactivatedInstallIds":[],"version":1}\#
        identity.replies.v1identity.replies.gateway.v1content-typeapplication/cloudevents+json\#
        {"specversion":"1.0","id":"\#u{1}","source":"identitybus/sync","type":"identity.reply.v1","subject":"\#
        {"specversion":"1.0","id":"\#u{1}","source":"identitybus/link","type":"identity.reply.v1","subject":"\#u{5}",\#
        "time":"\#u{3}","datacontenttype":"application/json","appid":"demo","partitionkey":"demo/",\#
        "correlationid":"\#u{4}","causationid":"\#u{4}","data":{"commandId":"\#u{4}","commandType":"identity.link.\#
        request.v1","commandDigest":"\#u{2}","status":"succeeded","result":{"userId":"","installId":"\#
        ","isActive":true,"personCreated":true,"version":1}}}
        """#.utf8)
}

/// A raw deflate stream that is used again for each receipt. Confined to its thread, as the loop is.
final class Deflater {
    private let stream: UnsafeMutablePointer<z_stream>

    init() {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        let result = identitybus_deflate_init_raw(stream)
        precondition(result == Z_OK, "zlib cannot be used: \(result)")
    }

    deinit {
        deflateEnd(stream)
        stream.deinitialize(count: 1)
        stream.deallocate()
    }

    /// The prefix, and behind it the text deflated.
    func deflate(_ text: [UInt8], after prefix: [UInt8]) -> [UInt8] {
        deflateReset(stream)
        ReceiptDictionary.bytes.withUnsafeBufferPointer {
            _ = deflateSetDictionary(stream, $0.baseAddress, UInt32($0.count))
        }
        let bound = Int(deflateBound(stream, UInt(text.count)))
        return [UInt8](unsafeUninitializedCapacity: prefix.count + bound) { buffer, count in
            _ = buffer.update(fromContentsOf: prefix)
            text.withUnsafeBufferPointer { text in
                stream.pointee.next_in = UnsafeMutablePointer(mutating: text.baseAddress)
                stream.pointee.avail_in = UInt32(text.count)
                stream.pointee.next_out = buffer.baseAddress.map { $0 + prefix.count }
                stream.pointee.avail_out = UInt32(bound)
                // There is room for all of it, so one call does it.
                let result = CZlib.deflate(stream, Z_FINISH)
                precondition(result == Z_STREAM_END, "zlib says \(result)")
            }
            count = prefix.count + bound - Int(stream.pointee.avail_out)
        }
    }
}

enum Inflater {
    /// A receipt is not larger: a reply is at most some KiB.
    private static let limit = 64 << 20

    static func inflate(_ bytes: [UInt8]) throws(OutboxCodec.Corrupted) -> [UInt8] {
        // zlib remembers where its stream stands, so it may not move.
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        defer {
            stream.deinitialize(count: 1)
            stream.deallocate()
        }
        guard identitybus_inflate_init_raw(stream) == Z_OK else { throw OutboxCodec.Corrupted() }
        defer { inflateEnd(stream) }
        ReceiptDictionary.bytes.withUnsafeBufferPointer {
            _ = inflateSetDictionary(stream, $0.baseAddress, UInt32($0.count))
        }
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        var result = Z_OK
        bytes.withUnsafeBufferPointer { bytes in
            stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
            stream.pointee.avail_in = UInt32(bytes.count)
            while result == Z_OK, text.count < limit {
                chunk.withUnsafeMutableBufferPointer { buffer in
                    stream.pointee.next_out = buffer.baseAddress
                    stream.pointee.avail_out = UInt32(buffer.count)
                    result = CZlib.inflate(stream, Z_NO_FLUSH)
                    text.append(contentsOf: buffer.prefix(buffer.count - Int(stream.pointee.avail_out)))
                }
            }
        }
        guard result == Z_STREAM_END else { throw OutboxCodec.Corrupted() }
        return text
    }
}

/// Writes UUIDs and other hexadecimal numbers as the bytes that they stand for: deflate needs a byte for each of their
/// digits.
enum HexPacking {
    /// 16 bytes of a UUID follow.
    private static let uuid: UInt8 = 6
    /// A count, and as many bytes, follow.
    private static let number: UInt8 = 7
    /// The next byte means itself.
    private static let literal: UInt8 = 14
    private static let shortest = 16
    private static let longest = 254
    private static let digits = Array("0123456789abcdef".utf8)
    /// Where a UUID has its dashes.
    private static let dashes = [8, 13, 18, 23]
    private static let parts = [(0, 8), (9, 13), (14, 18), (19, 23), (24, 36)]

    static func packed(_ text: [UInt8]) -> [UInt8] {
        var packed: [UInt8] = []
        packed.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            guard value(text[index]) != nil else {
                if text[index] == uuid || text[index] == number || text[index] == literal { packed.append(literal) }
                packed.append(text[index])
                index += 1
                continue
            }
            var end = index
            while end < text.count, end - index < longest, value(text[end]) != nil { end += 1 }
            if isUUID(text, index) {
                packed.append(uuid)
                for (start, end) in parts { appendBytes(text[index + start..<index + end], to: &packed) }
                index += 36
            } else if end - index >= shortest {
                end -= (end - index) % 2
                packed.append(number)
                packed.append(UInt8((end - index) / 2))
                appendBytes(text[index..<end], to: &packed)
                index = end
            } else {
                packed.append(contentsOf: text[index..<end])
                index = end
            }
        }
        return packed
    }

    static func unpacked(_ packed: [UInt8]) throws(OutboxCodec.Corrupted) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(2 * packed.count)
        var rest = packed[...]
        func take(_ count: Int) throws(OutboxCodec.Corrupted) -> ArraySlice<UInt8> {
            guard count <= rest.count else { throw OutboxCodec.Corrupted() }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        while let byte = rest.popFirst() {
            switch byte {
            case uuid:
                for (place, byte) in try take(16).enumerated() {
                    if [4, 6, 8, 10].contains(place) { text.append(UInt8(ascii: "-")) }
                    text.append(digits[Int(byte >> 4)])
                    text.append(digits[Int(byte & 15)])
                }
            case number:
                guard let count = rest.popFirst() else { throw OutboxCodec.Corrupted() }
                for byte in try take(Int(count)) {
                    text.append(digits[Int(byte >> 4)])
                    text.append(digits[Int(byte & 15)])
                }
            case literal: text.append(contentsOf: try take(1))
            default: text.append(byte)
            }
        }
        return text
    }

    private static func isUUID(_ text: [UInt8], _ start: Int) -> Bool {
        guard start + 36 <= text.count, text[start + 8] == UInt8(ascii: "-") else { return false }
        return (0..<36).allSatisfy { place in
            dashes.contains(place) ? text[start + place] == UInt8(ascii: "-") : value(text[start + place]) != nil
        }
    }

    /// Of a lower-case digit.
    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    private static func appendBytes(_ hex: ArraySlice<UInt8>, to bytes: inout [UInt8]) {
        var index = hex.startIndex
        while index + 1 < hex.endIndex {
            bytes.append((value(hex[index]) ?? 0) << 4 | (value(hex[index + 1]) ?? 0))
            index += 2
        }
    }
}
