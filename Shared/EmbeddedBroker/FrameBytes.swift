// SPDX-License-Identifier: Apache-2.0

/// Writes a request or a response.
struct FrameWriter {
    private(set) var bytes: [UInt8]

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = Array(bytes) }

    init(answering request: KafkaRequest) { self.init(request.bytes[4..<8]) }

    init(answeringFetch request: KafkaRequest) {
        self.init(answering: request)
        // No throttling, no error, no session.
        if request.version >= 1 { put(Int32(0)) }
        if request.version >= 7 {
            put(Int16(0))
            put(Int32(0))
        }
    }

    mutating func put(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func put(_ slice: ArraySlice<UInt8>) { bytes.append(contentsOf: slice) }

    mutating func put(_ string: String) {
        put(Int16(string.utf8.count))
        bytes.append(contentsOf: string.utf8)
    }

    /// - Parameter write: writes a partition, its number first.
    mutating func put<Partition>(
        _ topics: [(topic: String, partitions: [Partition])], _ write: (inout FrameWriter, Partition) -> Void
    ) {
        put(Int32(topics.count))
        for (topic, partitions) in topics {
            put(topic)
            put(Int32(partitions.count))
            for partition in partitions { write(&self, partition) }
        }
    }
}

/// Reads a frame from front to back. Beyond its end there is nothing.
struct FrameReader {
    private let bytes: [UInt8]
    private(set) var place: Int

    init(_ bytes: [UInt8], at place: Int = 0) {
        self.bytes = bytes
        self.place = place
    }

    /// - Returns: whether there was so much.
    @discardableResult
    mutating func skip(_ count: Int) -> Bool {
        place += count
        return place <= bytes.count
    }

    mutating func int8() -> UInt8? {
        guard skip(1) else { return nil }
        return bytes[place - 1]
    }

    mutating func int16() -> Int16? {
        guard skip(2) else { return nil }
        return Int16(bitPattern: UInt16(bytes[place - 2]) << 8 | UInt16(bytes[place - 1]))
    }

    mutating func int32() -> Int32? {
        guard skip(4) else { return nil }
        return Int32(bitPattern: bytes[place - 4..<place].reduce(0) { $0 << 8 | UInt32($1) })
    }

    mutating func int64() -> Int64? {
        guard let high = int32(), let low = int32() else { return nil }
        return Int64(high) << 32 | Int64(UInt32(bitPattern: low))
    }

    mutating func string() -> String? {
        guard let length = int16(), length >= 0, skip(Int(length)) else { return nil }
        return String(decoding: bytes[place - Int(length)..<place], as: UTF8.self)
    }

    /// An array of bytes, or of nothing where its length is -1.
    mutating func bytesOfArray() -> ArraySlice<UInt8>? {
        guard let length = int32(), skip(Int(max(0, length))) else { return nil }
        return bytes[place - Int(max(0, length))..<place]
    }

    mutating func skipString() -> Bool {
        guard let length = int16() else { return false }
        return skip(Int(max(0, length)))
    }

    /// Passes over what stands behind a partition's number in the response to a fetch.
    /// - Returns: the offset behind the last record, `nil` of an error, and whether there are records; `nil` when it is cut off.
    mutating func skipFetched(_ version: Int16) -> (end: Int64?, hasRecords: Bool)? {
        guard let error = int16(), let end = int64(), skip((version >= 4 ? 8 : 0) + (version >= 5 ? 8 : 0)) else {
            return nil
        }
        if version >= 4 {
            guard let aborted = int32(), skip(16 * Int(max(0, aborted))) else { return nil }
        }
        guard skip(version >= 11 ? 4 : 0), let length = int32(), skip(Int(max(0, length))) else { return nil }
        return (error == 0 ? end : nil, length > 0)
    }

    /// - Returns: whether the array was whole and `read` was content with each of its elements.
    mutating func forEach(_ read: (inout FrameReader) -> Bool) -> Bool {
        guard let count = int32() else { return false }
        for _ in 0..<max(0, count) where !read(&self) { return false }
        return true
    }
}
