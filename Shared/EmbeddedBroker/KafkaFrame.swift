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
        case joinGroup = 11
        case heartbeat = 12
        case syncGroup = 14
        case apiVersions = 18
    }

    /// The latest versions whose strings and arrays have lengths of fixed size.
    static let latestVersions: [API: Int16] = [.produce: 8, .fetch: 11, .joinGroup: 5, .heartbeat: 3, .syncGroup: 3]

    /// Partitions by topic, in the order of the request.
    typealias Partitions = [(topic: String, partitions: [Int32])]

    private(set) var bytes: [UInt8]
    /// `nil`: one that the relay passes on unread.
    let api: API?
    let version: Int16
    /// Behind the header.
    let body: Int

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
        struct Partition {
            var number: Int32
            var offset: Int64
            var maxBytes: Int
            /// Where it stands in the request.
            var place: Range<Int>
        }

        var topics: [(name: String, partitions: [Partition])] = []
        var wait: Duration
        /// Of all partitions together.
        var maxBytes: Int
        /// Where the topics stand in the request, their number included.
        var place: Range<Int>

        var partitions: Partitions { topics.map { ($0.name, $0.partitions.map(\.number)) } }
    }

    /// Makes a fetch one that does not wait.
    /// - Returns: what it asks for; `nil` when this is no fetch, or one that cannot be read.
    mutating func takeFetch() -> Fetch? {
        guard api == .fetch, version <= Self.latestVersions[.fetch] ?? 0 else { return nil }
        var reader = FrameReader(bytes, at: body)
        reader.skip(4)
        let placeOfWait = reader.place
        guard let wait = reader.int32(), reader.skip(4), let maxBytes = version >= 3 ? reader.int32() : .max else {
            return nil
        }
        reader.skip((version >= 4 ? 1 : 0) + (version >= 7 ? 8 : 0))
        var fetch = Fetch(
            wait: .milliseconds(max(0, wait)), maxBytes: Int(maxBytes), place: reader.place..<reader.place)
        let version = version
        let isWhole = reader.forEach { reader in
            guard let name = reader.string() else { return false }
            var partitions: [Fetch.Partition] = []
            let isWhole = reader.forEach { reader in
                let place = reader.place
                // The leader's epoch, the offset, where the log begins, and how many bytes at most.
                guard let number = reader.int32(), reader.skip(version >= 9 ? 4 : 0), let offset = reader.int64(),
                    reader.skip(version >= 5 ? 8 : 0), let maxBytes = reader.int32()
                else { return false }
                partitions.append(
                    .init(number: number, offset: offset, maxBytes: Int(maxBytes), place: place..<reader.place))
                return true
            }
            fetch.topics.append((name, partitions))
            return isWhole
        }
        guard isWhole else { return nil }
        fetch.place = fetch.place.lowerBound..<reader.place
        for place in placeOfWait..<placeOfWait + 4 { bytes[place] = 0 }
        return fetch
    }

    /// - Returns: the request, of some of its partitions.
    func bytes(of fetch: Fetch, where isAsked: (_ topic: String, Fetch.Partition) -> Bool) -> [UInt8] {
        var writer = FrameWriter(bytes[..<fetch.place.lowerBound])
        let topics = fetch.topics.map { topic in
            (topic: topic.name, partitions: topic.partitions.filter { isAsked(topic.name, $0) })
        }
        writer.put(topics.filter { !$0.partitions.isEmpty }) { writer, partition in writer.put(bytes[partition.place]) }
        writer.put(bytes[fetch.place.upperBound...])
        return writer.bytes
    }

    struct Produce {
        struct Partition {
            var number: Int32
            /// A batch of records.
            var records: ArraySlice<UInt8>
        }

        var topics: [(name: String, partitions: [Partition])] = []
        /// How many copies are to be written before the answer; -1 for all that are in sync.
        var acknowledgements: Int16

        var partitions: Partitions { topics.map { ($0.name, $0.partitions.map(\.number)) } }
        /// A producer that asks for no acknowledgement gets none. The test broker would send it one.
        var isAnswered: Bool { acknowledgements != 0 }
    }

    /// Dates what is to be appended to some topics, as a broker does where `message.timestamp.type` is `LogAppendTime`.
    ///
    /// - Parameter time: in milliseconds since 1970.
    /// - Returns: whether that could be done: records of the formats before version 2 are not dated.
    mutating func date(_ produce: inout Produce, _ isDated: (_ topic: String) -> Bool, at time: Int64) -> Bool {
        for (topic, partitions) in produce.topics where isDated(topic) {
            for partition in partitions where !partition.records.isEmpty {
                guard let dated = RecordBatch.dated(partition.records, at: time) else { return false }
                bytes.replaceSubrange(partition.records.indices, with: dated)
            }
        }
        produce = self.produce() ?? produce
        return true
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
            guard let name = reader.string() else { return false }
            var partitions: [Produce.Partition] = []
            let isWhole = reader.forEach { reader in
                guard let number = reader.int32(), let length = reader.int32(), reader.skip(Int(max(0, length))) else {
                    return false
                }
                let records = bytes[reader.place - Int(max(0, length))..<reader.place]
                partitions.append(.init(number: number, records: records))
                return true
            }
            produce.topics.append((name, partitions))
            return isWhole
        }
        return isWhole ? produce : nil
    }
}

/// What becomes of a response on its way through the relay, and the responses that are the relay's own.
enum KafkaResponse {
    /// Refuses every partition of a fetch.
    static func refusal(of fetch: KafkaRequest.Fetch, to request: KafkaRequest, code: Int16) -> [UInt8] {
        let version = request.version
        var writer = FrameWriter(answeringFetch: request)
        writer.put(fetch.partitions) { writer, number in
            writer.put(number)
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
        writer.put(produce.partitions) { writer, number in
            writer.put(number)
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

    /// At which offsets a produce was appended, by topic and partition, without those that failed.
    /// - Returns: `nil` when it cannot be read.
    static func appended(_ bytes: [UInt8], version: Int16) -> [String: [Int32: Int64]]? {
        var reader = FrameReader(bytes)
        reader.skip(4)
        var topics: [String: [Int32: Int64]] = [:]
        let isWhole = reader.forEach { reader in
            guard let topic = reader.string() else { return false }
            return reader.forEach { reader in
                guard let number = reader.int32(), let error = reader.int16(), let offset = reader.int64(),
                    reader.skip((version >= 2 ? 8 : 0) + (version >= 5 ? 8 : 0))
                else { return false }
                if version >= 8 {
                    guard reader.forEach({ $0.skip(4) && $0.skipString() }), reader.skipString() else { return false }
                }
                if error == 0 { topics[topic, default: [:]][number] = offset }
                return true
            }
        }
        return isWhole ? topics : nil
    }

    /// What a fetch brings of one partition.
    struct Fetched {
        /// As it stands in the response, its number first.
        var bytes: ArraySlice<UInt8>
        /// The offset behind the last record of the partition; `nil` of an error.
        var end: Int64?
        var hasRecords: Bool

        /// Neither records nor an error.
        var isEmpty: Bool { end != nil && !hasRecords }

        init(bytes: ArraySlice<UInt8>, end: Int64?, hasRecords: Bool) {
            self.bytes = bytes
            self.end = end
            self.hasRecords = hasRecords
        }

        /// - Parameter batches: of records, one behind the other.
        init(_ number: Int32, end: Int64, batches: [[UInt8]], version: Int16) {
            var writer = FrameWriter([])
            writer.put(number)
            writer.put(Int16(0))
            writer.put(end)
            if version >= 4 { writer.put(end) }
            // Where the log begins is not known here.
            if version >= 5 { writer.put(Int64(-1)) }
            if version >= 4 { writer.put(Int32(0)) }
            if version >= 11 { writer.put(Int32(-1)) }
            writer.put(Int32(batches.reduce(0) { $0 + $1.count }))
            for batch in batches { writer.put(batch[...]) }
            self.init(bytes: writer.bytes[...], end: end, hasRecords: !batches.isEmpty)
        }
    }

    /// - Returns: what a fetch has brought, by topic and partition; `nil` when it failed as a whole or cannot be read.
    static func fetched(_ bytes: [UInt8], version: Int16) -> [String: [Int32: Fetched]]? {
        var reader = FrameReader(bytes)
        reader.skip(4 + (version >= 1 ? 4 : 0))
        if version >= 7 {
            guard reader.int16() == 0 else { return nil }
            reader.skip(4)
        }
        var topics: [String: [Int32: Fetched]] = [:]
        let isWhole = reader.forEach { reader in
            guard let topic = reader.string() else { return false }
            return reader.forEach { reader in
                let place = reader.place
                guard let number = reader.int32(), let (end, hasRecords) = reader.skipFetched(version) else {
                    return false
                }
                topics[topic, default: [:]][number] = Fetched(
                    bytes: bytes[place..<reader.place], end: end, hasRecords: hasRecords)
                return true
            }
        }
        return isWhole ? topics : nil
    }

    /// The response to a fetch.
    static func response(
        to request: KafkaRequest, _ fetch: KafkaRequest.Fetch, _ found: [String: [Int32: Fetched]]
    ) -> [UInt8] {
        var writer = FrameWriter(answeringFetch: request)
        let topics = fetch.topics.map { topic in
            (topic: topic.name, partitions: topic.partitions.compactMap { found[topic.name]?[$0.number] })
        }
        writer.put(topics.filter { !$0.partitions.isEmpty }) { writer, partition in writer.put(partition.bytes) }
        return writer.bytes
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
