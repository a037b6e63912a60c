// SPDX-License-Identifier: Apache-2.0

import CZstd
import Contracts
import Glibc
import Observability
import Storage
import WireJSON

/// What the inbox keeps of a decision: enough to answer a repeated command with the very same reply, and to tell people
/// later what was decided (`identitybus explain`).
public struct Receipt: Sendable, Hashable {
    public var app = ""
    public var source = ""
    public var id = ""
    public var type = ""
    public var subject: String?
    public var reason: String?
    /// Events and commands to other services: their types and data.
    public var told: [Told] = []
    /// The trace of a command that is not answered; a reply names its own (``traceID``).
    var trace: String?
    /// The reply, without its signature.
    public var reply: OutboxRecord?
    /// The reply's number among the messages that the command led to; its id follows from it.
    public var replyIndex = 0

    public struct Told: Sendable, Hashable {
        public var role: OutboxRecord.Role
        public var type: String
        public var data: [UInt8]
    }

    public init() {}

    /// What people are told of an inbox row: without the reply's id, its command's digest and secrets.
    /// - Parameter packing: to be used again for many rows.
    /// - Throws: `OutboxCodec.Corrupted`.
    public init(column: [UInt8], decidedAt: Int64, packing: ReceiptPacking = ReceiptPacking()) throws {
        self = try ReceiptCodec.decode(
            column,
            { ReplyParts(subject: $0.subject, digest: "", decidedAt: decidedAt, id: $0.id) },
            packing: packing, open: { _ in nil }
        ).receipt
    }

    /// - Parameter replyIndex: which of the messages answers the command, if one does.
    init(
        of attributes: EventAttributes, app: String, reason: String?, messages: [OutboxRecord], replyIndex: Int?
    ) {
        self.app = app
        source = attributes.source
        id = attributes.id
        type = attributes.type
        subject = attributes.subject
        self.reason = reason
        for (index, message) in messages.enumerated() {
            switch message.role {
            case .event, .command: if let told = Told(message) { self.told.append(told) }
            case .reply, .confidentialReply:
                guard index == replyIndex else { break }
                reply = message
                reply?.record.headers.removeAll { $0.name == HeaderName.signature }
                self.replyIndex = index
            case .deadLetter: break
            }
        }
        if reply == nil { trace = attributes.traceParent.flatMap { SpanContext(traceParent: $0)?.traceText } }
    }

    /// The trace that the command was sent in: 32 hex digits.
    public var traceID: String? { trace ?? reply.flatMap { SpanContext(headers: $0.headers)?.traceText } }
}

extension Receipt.Told {
    /// `nil` when it is not an envelope as we write it: attributes first, `data` last. (Neither of the two marks can stand
    /// inside a JSON string, where quotes are escaped.)
    init?(_ message: OutboxRecord) {
        guard let value = message.value, value.last == UInt8(ascii: "}"),
            let type = value.end(of: #","type":""#),
            let typeEnd = value[type...].firstIndex(of: UInt8(ascii: "\"")),
            let data = value.end(of: #","data":"#)
        else { return nil }
        role = message.role
        self.type = String(decoding: value[type..<typeEnd], as: UTF8.self)
        self.data = Array(value[data..<value.count - 1])
    }
}

extension [UInt8] {
    /// Where the first place of the text ends.
    fileprivate func end(of text: StaticString) -> Int? {
        let text = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        return place(of: text, from: 0).map { $0 + text.count }
    }

    /// Where the text, which is not empty, stands first.
    fileprivate func place(of text: UnsafeRawBufferPointer, from start: Int) -> Int? {
        withUnsafeBytes { bytes in
            guard let all = bytes.baseAddress, let searched = text.baseAddress, let first = text.first else {
                return nil
            }
            var index = start
            while index + text.count <= bytes.count,
                let found = memchr(all + index, Int32(first), bytes.count - text.count - index + 1)
            {
                index = UnsafeRawPointer(found) - all
                if memcmp(found, searched, text.count) == 0 { return index }
                index += 1
            }
            return nil
        }
    }
}

/// The inbox's `receipt` column. Its first byte says what follows: 1 a receipt, packed (``ReceiptPacking``); 2 the same,
/// with the reply's value (a secret) encrypted behind it.
enum ReceiptCodec {
    static let plain: UInt8 = 1
    private static let confidential: UInt8 = 2

    /// - Parameters:
    ///   - parts: what follows from the command; without them the reply is kept whole.
    ///   - seal: encrypts a secret.
    static func encode(
        _ receipt: Receipt, _ parts: ReplyParts?, packing: ReceiptPacking, seal: ([UInt8]) throws -> [UInt8]
    ) throws -> [UInt8] {
        // Most are not longer.
        var text = Writer(capacity: 1536)
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
            let shortened = reply.value.flatMap { parts?.removed(from: $0) }
            text.write(shortened == nil ? 0 : 1)
            let value = shortened ?? reply.value
            if reply.role == .confidentialReply, let value {
                secret = try seal(value)
            } else {
                text.write(bytes: value)
            }
        } else {
            text.write(0)
            // Nothing for most that have no reply either.
            if let trace = receipt.trace { text.write(trace) }
        }
        guard let secret else { return packing.packed(text.bytes, after: [plain]) }
        let packed = packing.packed(text.bytes, after: [])
        var head = Writer(capacity: packed.count + 8)
        head.bytes.append(confidential)
        head.write(bytes: packed)
        return head.bytes + secret
    }

    /// - Parameters:
    ///   - parts: what follows from the command; it is given the index of the reply and the subject.
    ///   - open: decrypts a secret; `nil` when no key of now can.
    /// - Returns: the receipt, and whether all of it could be read: not so when it holds a secret that cannot be opened.
    /// - Throws: `OutboxCodec.Corrupted`.
    static func decode(
        _ bytes: [UInt8], _ parts: (Receipt) -> ReplyParts, packing: ReceiptPacking, open: ([UInt8]) -> [UInt8]?
    ) throws(OutboxCodec.Corrupted) -> (receipt: Receipt, isOpen: Bool) {
        var packed = bytes.dropFirst()
        var secret: ArraySlice<UInt8>?
        if bytes.first == confidential {
            var head = Reader(bytes: packed)
            guard let text = try head.bytes() else { throw OutboxCodec.Corrupted() }
            (packed, secret) = (ArraySlice(text), head.rest)
        } else if bytes.first != plain {
            throw OutboxCodec.Corrupted()
        }
        var text = Reader(bytes: ArraySlice(try packing.unpacked(packed)))
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
        guard kind != 0 else {
            if !text.rest.isEmpty { receipt.trace = try text.required() }
            return (receipt, true)
        }
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

    // MARK: Parts

    private struct Writer {
        var bytes: [UInt8] = []

        init(capacity: Int) { bytes.reserveCapacity(capacity) }

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

/// What a receipt leaves out of the reply, because it follows from the command and the inbox row. Where it is not all
/// known (``Receipt`` for people), it is left empty.
struct ReplyParts {
    /// The texts, one behind the other. For the first stands 1, for the next 2 and so on: control characters, which stand
    /// in no JSON text.
    private let texts: [UInt8]
    private let ends: InlineArray<5, Int>

    /// - Parameters:
    ///   - replyID: as the reply has it.
    ///   - time: RFC 3339, of the decision.
    ///   - id: the command's.
    init(replyID: String, digest: String, time: String, id: String, subject: String?) {
        var texts: [UInt8] = []
        texts.reserveCapacity(256)
        var ends = InlineArray<5, Int>(repeating: 0)
        func add(_ text: String, as number: Int) {
            texts.append(contentsOf: text.utf8)
            ends[number] = texts.count
        }
        add(replyID, as: 0)
        add(digest, as: 1)
        add(time, as: 2)
        add(id, as: 3)
        add(subject ?? "", as: 4)
        (self.texts, self.ends) = (texts, ends)
    }

    init(key: CommandKey? = nil, index: Int = 0, subject: String?, digest: String, decidedAt: Int64, id: String) {
        self.init(
            replyID: key.map { DerivedID.message(of: $0, index: index) } ?? "", digest: digest,
            time: Timestamp(milliseconds: decidedAt).rfc3339, id: id, subject: subject)
    }

    private func range(_ number: Int) -> Range<Int> { (number == 0 ? 0 : ends[number - 1])..<ends[number] }

    /// - Returns: `nil` when the value is no JSON text of ours.
    func removed(from value: [UInt8]) -> [UInt8]? {
        // Without a way out of the loop: so it takes sixteen bytes a step.
        guard value.reduce(UInt8.max, min) > UInt8(ends.count) else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(value.count)
        // Where each text stands next, from `copied` on.
        var places = InlineArray<5, Int?> { place(of: $0, in: value, from: 0) }
        var copied = 0
        while true {
            var next: (place: Int, number: Int)?
            for number in places.indices {
                guard let place = places[number], place < next?.place ?? value.count else { continue }
                next = (place, number)
            }
            guard let next else { break }
            result.append(contentsOf: value[copied..<next.place])
            result.append(UInt8(next.number + 1))
            copied = next.place + range(next.number).count
            for number in places.indices {
                guard let place = places[number], place < copied else { continue }
                places[number] = self.place(of: number, in: value, from: copied)
            }
        }
        result.append(contentsOf: value[copied...])
        return result
    }

    private func place(of number: Int, in value: [UInt8], from start: Int) -> Int? {
        let range = range(number)
        // What is short is not worth a mark.
        guard range.count >= 8 else { return nil }
        return texts.withUnsafeBytes { value.place(of: UnsafeRawBufferPointer(rebasing: $0[range]), from: start) }
    }

    func restored(in value: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(2 * value.count)
        for byte in value {
            if (1...ends.count).contains(Int(byte)) {
                result.append(contentsOf: texts[range(Int(byte) - 1)])
            } else {
                result.append(byte)
            }
        }
        return result
    }
}

/// Receipts are short and much alike: zstd with a dictionary packs them to a fifth, in a few microseconds. Confined to
/// its thread, as the loop is.
public final class ReceiptPacking {
    /// A receipt is not larger: a reply is at most some KiB.
    private static let limit = 64 << 20
    private static let level: Int32 = 3

    private let compression: OpaquePointer
    private let decompression: OpaquePointer

    public init() {
        let dictionary = ReceiptDictionary.bytes
        guard let compression = ZSTD_createCCtx(), let decompression = ZSTD_createDCtx() else {
            preconditionFailure("zstd cannot be used: out of memory")
        }
        (self.compression, self.decompression) = (compression, decompression)
        // The contexts keep copies. One dictionary for all, so no receipt names it.
        Self.check(ZSTD_CCtx_setParameter(compression, ZSTD_c_compressionLevel, Self.level))
        Self.check(ZSTD_CCtx_setParameter(compression, ZSTD_c_dictIDFlag, 0))
        Self.check(ZSTD_CCtx_loadDictionary(compression, dictionary, dictionary.count))
        Self.check(ZSTD_DCtx_loadDictionary(decompression, dictionary, dictionary.count))
    }

    deinit {
        ZSTD_freeCCtx(compression)
        ZSTD_freeDCtx(decompression)
    }

    /// The prefix, and behind it the text packed.
    func packed(_ text: [UInt8], after prefix: [UInt8]) -> [UInt8] {
        // There is room for all of it, so it cannot fail.
        let bound = ZSTD_compressBound(text.count)
        return [UInt8](unsafeUninitializedCapacity: prefix.count + bound) { buffer, count in
            _ = buffer.update(fromContentsOf: prefix)
            let place = buffer.baseAddress.map { $0 + prefix.count }
            count = prefix.count + Self.check(ZSTD_compress2(compression, place, bound, text, text.count))
        }
    }

    /// - Throws: `OutboxCodec.Corrupted` for bytes that ``packed(_:after:)`` did not write.
    func unpacked(_ packed: ArraySlice<UInt8>) throws(OutboxCodec.Corrupted) -> [UInt8] {
        let text = packed.withUnsafeBufferPointer { packed -> [UInt8]? in
            let size = ZSTD_getFrameContentSize(packed.baseAddress, packed.count)
            guard size <= UInt64(Self.limit) else { return nil }
            var result = 0
            let text = [UInt8](unsafeUninitializedCapacity: Int(size)) { buffer, count in
                result = ZSTD_decompressDCtx(
                    decompression, buffer.baseAddress, Int(size), packed.baseAddress, packed.count)
                count = ZSTD_isError(result) == 0 ? result : 0
            }
            return ZSTD_isError(result) == 0 ? text : nil
        }
        guard let text else { throw OutboxCodec.Corrupted() }
        return text
    }

    @discardableResult
    private static func check(_ result: Int) -> Int {
        precondition(ZSTD_isError(result) == 0, "zstd: \(String(cString: ZSTD_getErrorName(result)))")
        return result
    }
}
