// SPDX-License-Identifier: Apache-2.0

/// The little that ``FetchRelay`` has to know of Kafka's protocol: requests and responses without their length, big-endian,
/// as https://kafka.apache.org/protocol describes them. Only versions before the compact ones are looked into: the relay
/// offers its clients no others.
struct KafkaRequest {
    enum API: Int16 {
        case produce = 0
        case fetch = 1
        case metadata = 3
        case findCoordinator = 10
        case apiVersions = 18
    }

    /// The latest versions whose strings and arrays have lengths of fixed size.
    static let latestVersions: [API: Int16] = [.produce: 8, .fetch: 11]

    private(set) var bytes: [UInt8]
    /// `nil`: one that the relay passes on unread.
    let api: API?
    let version: Int16
    private let body: Int

    /// - Returns: `nil` when it is too short for a request.
    init?(_ bytes: [UInt8]) {
        var reader = FrameReader(bytes)
        guard let api = reader.int16(), let version = reader.int16(), reader.int32() != nil, reader.skipString() else {
            return nil
        }
        self.bytes = bytes
        self.api = API(rawValue: api)
        self.version = version
        body = reader.place
    }

    /// What a fetch asks for, and how long it may wait.
    struct Fetch {
        var topics: [String] = []
        var wait: Duration
    }

    /// Makes a fetch one that does not wait.
    /// - Returns: what it asks for; `nil` when this is no fetch, or one that cannot be read.
    mutating func takeFetch() -> Fetch? {
        guard api == .fetch, version <= Self.latestVersions[.fetch] ?? 0 else { return nil }
        var reader = FrameReader(bytes, at: body)
        reader.skip(4)
        let placeOfWait = reader.place
        guard let wait = reader.int32() else { return nil }
        reader.skip(4 + (version >= 3 ? 4 : 0) + (version >= 4 ? 1 : 0) + (version >= 7 ? 8 : 0))
        // Partition, epoch, offset, where the log begins, bytes.
        let partition = 4 + (version >= 9 ? 4 : 0) + 8 + (version >= 5 ? 8 : 0) + 4
        var fetch = Fetch(wait: .milliseconds(max(0, wait)))
        let isWhole = reader.forEach { reader in
            guard let topic = reader.string() else { return false }
            fetch.topics.append(topic)
            return reader.forEach { $0.skip(partition) }
        }
        guard isWhole else { return nil }
        for place in placeOfWait..<placeOfWait + 4 { bytes[place] = 0 }
        return fetch
    }

    struct Produce {
        var topics: [String] = []
        /// A producer that asks for no acknowledgement gets none. The test broker would send it one.
        var isAnswered: Bool
    }

    /// - Returns: `nil` when this is no produce, or one that cannot be read.
    func produce() -> Produce? {
        guard api == .produce, version <= Self.latestVersions[.produce] ?? 0 else { return nil }
        var reader = FrameReader(bytes, at: body)
        if version >= 3, !reader.skipString() { return nil }
        guard let acknowledgements = reader.int16() else { return nil }
        reader.skip(4)
        var produce = Produce(isAnswered: acknowledgements != 0)
        let isWhole = reader.forEach { reader in
            guard let topic = reader.string() else { return false }
            produce.topics.append(topic)
            return reader.forEach { partition in
                partition.skip(4)
                guard let length = partition.int32() else { return false }
                return partition.skip(Int(max(0, length)))
            }
        }
        return isWhole ? produce : nil
    }
}

/// What becomes of a response on its way through the relay.
enum KafkaResponse {
    /// Whether a fetch has brought nothing, and no error either.
    static func isEmptyFetch(_ bytes: [UInt8], version: Int16) -> Bool {
        var reader = FrameReader(bytes)
        reader.skip(4 + (version >= 1 ? 4 : 0))
        if version >= 7 {
            guard reader.int16() == 0 else { return false }
            reader.skip(4)
        }
        return reader.forEach { reader in
            guard reader.skipString() else { return false }
            return reader.forEach { partition in
                partition.skip(4)
                guard partition.int16() == 0 else { return false }
                partition.skip(8 + (version >= 4 ? 8 : 0) + (version >= 5 ? 8 : 0))
                if version >= 4 {
                    guard let aborted = partition.int32(), partition.skip(16 * Int(max(0, aborted))) else {
                        return false
                    }
                }
                if version >= 11 { partition.skip(4) }
                return partition.int32().map { $0 <= 0 } ?? false
            }
        }
    }

    /// Puts one port in the place of another wherever a response tells the address of a broker.
    ///
    /// - Parameter ports: the broker's own, and the one that clients are to use.
    static func redirect(_ bytes: inout [UInt8], host: String, ports: [UInt16: UInt16]) {
        let host = Array(host.utf8)
        var place = 0
        while place + host.count + 4 <= bytes.count {
            defer { place += 1 }
            guard bytes[place] == host[0], bytes[place..<place + host.count].elementsEqual(host) else { continue }
            var reader = FrameReader(bytes, at: place + host.count)
            guard let port = reader.int32().flatMap(UInt16.init(exactly:)), let other = ports[port] else { continue }
            bytes[reader.place - 2] = UInt8(other >> 8)
            bytes[reader.place - 1] = UInt8(truncatingIfNeeded: other)
        }
    }

    /// Offers no later versions than ``KafkaRequest`` can read.
    static func limitVersions(_ bytes: inout [UInt8], version: Int16) {
        var reader = FrameReader(bytes)
        reader.skip(4 + 2)
        // From version 3 on the array's length has one byte (there are few), and each entry ends with a tag's.
        let isCompact = version >= 3
        guard let count = isCompact ? reader.int8().map({ Int($0) - 1 }) : reader.int32().map(Int.init) else { return }
        for _ in 0..<max(0, count) {
            guard let api = reader.int16(), reader.int16() != nil, let latest = reader.int16() else { return }
            if let limit = KafkaRequest.API(rawValue: api).flatMap({ KafkaRequest.latestVersions[$0] }), limit < latest
            {
                bytes[reader.place - 2] = 0
                bytes[reader.place - 1] = UInt8(limit)
            }
            if isCompact { reader.skip(1) }
        }
    }
}

/// Reads a frame from front to back. Beyond its end there is nothing.
private struct FrameReader {
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

    mutating func string() -> String? {
        guard let length = int16(), length >= 0, skip(Int(length)) else { return nil }
        return String(decoding: bytes[place - Int(length)..<place], as: UTF8.self)
    }

    mutating func skipString() -> Bool {
        guard let length = int16() else { return false }
        return skip(Int(max(0, length)))
    }

    /// - Returns: whether the array was whole and `read` was content with each of its elements.
    mutating func forEach(_ read: (inout FrameReader) -> Bool) -> Bool {
        guard let count = int32() else { return false }
        for _ in 0..<max(0, count) where !read(&self) { return false }
        return true
    }
}
