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

    /// Partitions by topic, in the order of the request.
    typealias Partitions = [(topic: String, numbers: [Int32])]

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
        var partitions: Partitions = []
        var wait: Duration

        var topics: [String] { partitions.map(\.topic) }
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
        // Number, epoch, offset, where the log begins, bytes.
        let partition = 4 + (version >= 9 ? 4 : 0) + 8 + (version >= 5 ? 8 : 0) + 4
        var fetch = Fetch(wait: .milliseconds(max(0, wait)))
        let isWhole = reader.forEach { reader in
            reader.partitions(into: &fetch.partitions) { $0.skip(partition - 4) }
        }
        guard isWhole else { return nil }
        for place in placeOfWait..<placeOfWait + 4 { bytes[place] = 0 }
        return fetch
    }

    struct Produce {
        var partitions: Partitions = []
        /// How many copies are to be written before the answer; -1 for all that are in sync.
        var acknowledgements: Int16

        var topics: [String] { partitions.map(\.topic) }
        /// A producer that asks for no acknowledgement gets none. The test broker would send it one.
        var isAnswered: Bool { acknowledgements != 0 }
    }

    /// - Returns: `nil` when this is no produce, or one that cannot be read.
    func produce() -> Produce? {
        guard api == .produce, version <= Self.latestVersions[.produce] ?? 0 else { return nil }
        var reader = FrameReader(bytes, at: body)
        if version >= 3, !reader.skipString() { return nil }
        guard let acknowledgements = reader.int16() else { return nil }
        reader.skip(4)
        var produce = Produce(acknowledgements: acknowledgements)
        let isWhole = reader.forEach { reader in
            reader.partitions(into: &produce.partitions) { partition in
                guard let length = partition.int32() else { return false }
                return partition.skip(Int(max(0, length)))
            }
        }
        return isWhole ? produce : nil
    }
}

/// What becomes of a response on its way through the relay, and the responses that are the relay's own.
enum KafkaResponse {
    /// Refuses every partition of a fetch.
    static func refusal(of fetch: KafkaRequest.Fetch, to request: KafkaRequest, code: Int16) -> [UInt8] {
        let version = request.version
        var writer = FrameWriter(answering: request)
        if version >= 1 { writer.put(Int32(0)) }
        if version >= 7 {
            writer.put(Int16(0))
            writer.put(Int32(0))
        }
        writer.put(fetch.partitions) { writer in
            writer.put(code)
            writer.put(Int64(-1))
            if version >= 4 { writer.put(Int64(-1)) }
            if version >= 5 { writer.put(Int64(-1)) }
            if version >= 4 { writer.put(Int32(0)) }
            if version >= 11 { writer.put(Int32(-1)) }
            writer.put(Int32(0))
        }
        return writer.bytes
    }

    /// Refuses every partition of a produce.
    static func refusal(of produce: KafkaRequest.Produce, to request: KafkaRequest, code: Int16) -> [UInt8] {
        let version = request.version
        var writer = FrameWriter(answering: request)
        writer.put(produce.partitions) { writer in
            writer.put(code)
            writer.put(Int64(-1))
            if version >= 2 { writer.put(Int64(-1)) }
            if version >= 5 { writer.put(Int64(-1)) }
            if version >= 8 {
                writer.put(Int32(0))
                writer.put(Int16(-1))
            }
        }
        if version >= 1 { writer.put(Int32(0)) }
        return writer.bytes
    }

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

/// Writes a response.
private struct FrameWriter {
    private(set) var bytes: [UInt8]

    init(answering request: KafkaRequest) { bytes = Array(request.bytes[4..<8]) }

    mutating func put(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// - Parameter rest: writes what comes behind a partition's number.
    mutating func put(_ partitions: KafkaRequest.Partitions, _ rest: (inout FrameWriter) -> Void) {
        put(Int32(partitions.count))
        for (topic, numbers) in partitions {
            put(Int16(topic.utf8.count))
            bytes.append(contentsOf: topic.utf8)
            put(Int32(numbers.count))
            for number in numbers {
                put(number)
                rest(&self)
            }
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

    /// Reads a topic and its partitions.
    /// - Parameter rest: passes over what comes behind a partition's number.
    mutating func partitions(
        into partitions: inout KafkaRequest.Partitions, _ rest: (inout FrameReader) -> Bool
    ) -> Bool {
        guard let topic = string() else { return false }
        var numbers: [Int32] = []
        let isWhole = forEach { reader in
            guard let number = reader.int32() else { return false }
            numbers.append(number)
            return rest(&reader)
        }
        partitions.append((topic, numbers))
        return isWhole
    }

    /// - Returns: whether the array was whole and `read` was content with each of its elements.
    mutating func forEach(_ read: (inout FrameReader) -> Bool) -> Bool {
        guard let count = int32() else { return false }
        for _ in 0..<max(0, count) where !read(&self) { return false }
        return true
    }
}
