// SPDX-License-Identifier: Apache-2.0

/// The last batches of a partition's log.
struct LogTail {
    /// How many bytes are kept of a partition, as long as that is more than its last batch.
    static let limit = 131_072

    /// The first offset that is here.
    private(set) var start: Int64
    /// The offset behind the last record.
    private(set) var end: Int64
    private var batches: [(offset: Int64, bytes: [UInt8])] = []
    private var size = 0

    /// - Parameter end: where the log ends.
    init(at end: Int64) {
        start = end
        self.end = end
    }

    /// - Parameter offset: where the broker has put it. Batches of several producers may be told out of order: what stands
    ///   before one that is missing goes, and one that comes late is left to the broker.
    mutating func append(_ batch: RecordBatch, at offset: Int64) {
        if offset > end { self = LogTail(at: offset) }
        guard offset == end else { return }
        batches.append((offset, batch.bytes(at: offset)))
        size += batch.bytes.count
        end += Int64(batch.count)
        var gone = 0
        while size > Self.limit, gone < batches.count - 1 {
            size -= batches[gone].bytes.count
            gone += 1
        }
        batches.removeFirst(gone)
        start = batches[0].offset
    }

    /// - Parameters:
    ///   - limit: in bytes.
    ///   - isFirst: whether one batch is to be given however large it is, so that its reader gets on.
    /// - Returns: the batches from the one with this offset on; `nil` when the broker has to be asked.
    func batches(from offset: Int64, atMost limit: Int, isFirst: Bool) -> [[UInt8]]? {
        guard offset >= start, offset <= end else { return nil }
        if offset == end { return [] }
        let first = batches.lastIndex { $0.offset <= offset } ?? 0
        var size = 0
        var found: [[UInt8]] = []
        for batch in batches[first...] {
            size += batch.bytes.count
            if size > limit, !(isFirst && found.isEmpty) { break }
            found.append(batch.bytes)
        }
        return found
    }
}

/// Records as a producer sends them and a broker keeps them: one batch of
/// [version 2](https://kafka.apache.org/documentation/#recordbatch), which begins with its offset.
struct RecordBatch {
    let bytes: ArraySlice<UInt8>
    let count: Int32

    /// - Returns: `nil` when these are no such records, or several batches of them.
    init?(_ bytes: ArraySlice<UInt8>) {
        let header = 61
        guard bytes.count >= header, bytes[bytes.startIndex + 16] == 2,
            Self.number(bytes, 8).map({ Int($0) + 12 }) == bytes.count, let count = Self.number(bytes, 57), count > 0
        else { return nil }
        self.bytes = bytes
        self.count = count
    }

    private static func number(_ bytes: ArraySlice<UInt8>, _ place: Int) -> Int32? {
        let start = bytes.startIndex + place
        return Int32(bitPattern: bytes[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) })
    }

    func bytes(at offset: Int64) -> [UInt8] {
        withUnsafeBytes(of: offset.bigEndian) { Array($0) } + bytes.dropFirst(8)
    }

    /// Batches, one behind the other, with this time for that of their records: by their attributes it is the log's.
    /// - Parameter time: in milliseconds since 1970.
    /// - Returns: `nil` when these are no such batches.
    static func dated(_ batches: ArraySlice<UInt8>, at time: Int64) -> [UInt8]? {
        var bytes = Array(batches)
        var start = 0
        while start < bytes.count {
            guard start + 61 <= bytes.count, let length = number(bytes[start...], 8), length >= 49,
                start + 12 + Int(length) <= bytes.count, bytes[start + 16] == 2
            else { return nil }
            let end = start + 12 + Int(length)
            bytes[start + 22] |= 0x08
            withUnsafeBytes(of: time.bigEndian) { bytes.replaceSubrange(start + 35..<start + 43, with: $0) }
            let sum = CRC32C.of(bytes[start + 21..<end])
            withUnsafeBytes(of: sum.bigEndian) { bytes.replaceSubrange(start + 17..<start + 21, with: $0) }
            start = end
        }
        return bytes
    }
}

/// The checksum of a batch: CRC-32 with Castagnoli's polynomial.
enum CRC32C {
    private static let table: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(UInt32(byte)) { sum, _ in sum & 1 == 1 ? 0x82F6_3B78 ^ (sum >> 1) : sum >> 1 }
    }

    static func of(_ bytes: some Sequence<UInt8>) -> UInt32 {
        ~bytes.reduce(~UInt32(0)) { sum, byte in table[Int(UInt8(truncatingIfNeeded: sum) ^ byte)] ^ (sum >> 8) }
    }
}
