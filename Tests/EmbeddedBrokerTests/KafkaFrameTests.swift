// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import EmbeddedBroker

@Suite struct KafkaFrameTests {
    @Test(arguments: [0, 3, 4, 5, 7, 9, 11] as [Int16]) func aFetchTellsItsTopicsAndNoLongerWaits(version: Int16) throws
    {
        let bytes = Frame.request(api: 1, version: version) { frame in
            frame.int32(-1)
            frame.int32(500)
            frame.int32(1)
            if version >= 3 { frame.int32(1000) }
            if version >= 4 { frame.int8(1) }
            if version >= 7 { frame.int64(-1) }
            frame.array(["a", "ü"]) { frame, topic in
                frame.string(topic)
                frame.array([0, 1] as [Int32]) { frame, partition in
                    frame.int32(partition)
                    if version >= 9 { frame.int32(-1) }
                    frame.int64(7)
                    if version >= 5 { frame.int64(-1) }
                    frame.int32(100)
                }
            }
            if version >= 7 { frame.int32(0) }
            if version >= 11 { frame.string("") }
        }
        var request = try #require(KafkaRequest(bytes))
        let taken = request.takeFetch()
        let fetch = try #require(taken)
        #expect(fetch.topics.map(\.name) == ["a", "ü"])
        #expect(fetch.topics.map { $0.partitions.map(\.number) } == [[0, 1], [0, 1]])
        #expect(fetch.topics.allSatisfy { $0.partitions.allSatisfy { $0.offset == 7 && $0.maxBytes == 100 } })
        #expect(fetch.maxBytes == (version >= 3 ? 1000 : Int(Int32.max)))
        #expect(fetch.wait == .milliseconds(500))
        #expect(request.bytes(of: fetch) { _, _ in true } == request.bytes)
        var half = try #require(KafkaRequest(request.bytes(of: fetch) { $0 == "ü" && $1.number == 1 }))
        let takenHalf = half.takeFetch()
        let asked = try #require(takenHalf)
        #expect(asked.topics.map(\.name) == ["ü"] && asked.topics[0].partitions.map(\.number) == [1])
        #expect(half.bytes.count == bytes.count - (version >= 9 ? 28 : version >= 5 ? 24 : 16) * 3 - 7)
        let changed = zip(bytes, request.bytes).filter { $0 != $1 }
        #expect(changed.map(\.0) == [1, 0xF4], "500")
        #expect(changed.map(\.1) == [0, 0])
        var again = try #require(KafkaRequest(request.bytes))
        #expect(again.takeFetch()?.wait == .zero)
        for length in 0..<bytes.count - (version >= 11 ? 6 : version >= 7 ? 4 : 0) {
            var cut = KafkaRequest(Array(bytes.prefix(length)))
            #expect(cut?.takeFetch() == nil)
        }
    }

    @Test(arguments: [0, 3, 8] as [Int16], [0, 1, -1] as [Int16])
    func aProduceTellsItsTopicsAndWhetherItIsAnswered(version: Int16, acknowledgements: Int16) throws {
        let bytes = Frame.request(api: 0, version: version) { frame in
            if version >= 3 { frame.int16(-1) }
            frame.int16(acknowledgements)
            frame.int32(5000)
            frame.array(["a", "b"]) { frame, topic in
                frame.string(topic)
                frame.array([0, 1] as [Int32]) { frame, partition in
                    frame.int32(partition)
                    frame.int32(3)
                    frame.bytes += [1, 2, 3]
                }
            }
        }
        let produce = try #require(KafkaRequest(bytes)?.produce())
        #expect(produce.topics.map(\.name) == ["a", "b"])
        #expect(produce.topics.allSatisfy { $0.partitions.allSatisfy { $0.records == [1, 2, 3] } })
        #expect(produce.partitions.map(\.partitions) == [[0, 1], [0, 1]])
        #expect(produce.isAnswered == (acknowledgements != 0))
        #expect(KafkaRequest(bytes.dropLast())?.produce() == nil)
        #expect(KafkaRequest(Frame.request(api: 0, version: 9) { $0.int32(0) })?.produce() == nil)
    }

    enum Part: CaseIterable {
        case nothing, records, partitionError, sessionError
    }

    @Test(arguments: [0, 1, 4, 5, 7, 11] as [Int16], Part.allCases)
    func anEmptyFetchHasNeitherRecordsNorErrors(version: Int16, part: Part) throws {
        var frame = Frame()
        frame.int32(17)
        if version >= 1 { frame.int32(0) }
        if version >= 7 {
            frame.int16(part == .sessionError ? 70 : 0)
            frame.int32(0)
        }
        frame.array(["a", "b"]) { frame, topic in
            frame.string(topic)
            frame.array([0, 1] as [Int32]) { frame, partition in
                let isLast = topic == "b" && partition == 1
                frame.int32(partition)
                frame.int16(part == .partitionError && isLast ? 6 : 0)
                frame.int64(9)
                if version >= 4 { frame.int64(9) }
                if version >= 5 { frame.int64(0) }
                if version >= 4 {
                    frame.array(partition == 0 ? [1] : []) { frame, _ in
                        frame.int64(1)
                        frame.int64(1)
                    }
                }
                if version >= 11 { frame.int32(-1) }
                frame.int32(part == .records && isLast ? 2 : partition == 0 ? -1 : 0)
                if part == .records, isLast { frame.bytes += [1, 2] }
            }
        }
        let fetched = KafkaResponse.fetched(frame.bytes, version: version)
        #expect(KafkaResponse.fetched([1, 2, 3], version: version) == nil)
        #expect(KafkaResponse.fetched(frame.bytes.dropLast(), version: version) == nil)
        if part == .sessionError, version >= 7 { return #expect(fetched == nil) }
        let found = try #require(fetched)
        #expect(found.keys.sorted() == ["a", "b"])
        for (topic, partitions) in found {
            #expect(partitions.keys.sorted() == [0, 1])
            for (number, partition) in partitions {
                let isOfPart = topic == "b" && number == 1 && (part == .records || part == .partitionError)
                #expect(partition.isEmpty == !isOfPart)
            }
        }
        let request = try #require(KafkaRequest(Frame.request(api: 1, version: version) { _ in }))
        let partitions = [0, 1].map { number in
            KafkaRequest.Fetch.Partition(number: number, offset: 9, maxBytes: 100, place: 0..<0)
        }
        let fetch = KafkaRequest.Fetch(
            topics: ["a", "b"].map { ($0, partitions) }, wait: .zero, maxBytes: 1000, place: 0..<0)
        let again = KafkaResponse.response(to: request, fetch, found)
        #expect(again == frame.bytes)
    }

    @Test(arguments: [0, 2, 5, 8] as [Int16]) func aProduceIsToldWhereItWent(version: Int16) {
        var frame = Frame()
        frame.int32(17)
        frame.array(["a", "b"]) { frame, topic in
            frame.string(topic)
            frame.array([0, 1] as [Int32]) { frame, partition in
                frame.int32(partition)
                frame.int16(topic == "b" && partition == 1 ? 6 : 0)
                frame.int64(topic == "a" ? 7 : 8)
                if version >= 2 { frame.int64(-1) }
                if version >= 5 { frame.int64(0) }
                if version >= 8 {
                    frame.array(["wrong"]) { frame, text in
                        frame.int32(0)
                        frame.string(text)
                    }
                    frame.int16(-1)
                }
            }
        }
        if version >= 1 { frame.int32(0) }
        #expect(KafkaResponse.appended(frame.bytes, version: version) == ["a": [0: 7, 1: 7], "b": [0: 8]])
        #expect(KafkaResponse.appended(frame.bytes.dropLast(5), version: version) == nil)
    }

    @Test func addressesOfBrokersAreReplaced() {
        func response(_ ports: [Int32], _ host: String = "127.0.0.1") -> [UInt8] {
            var frame = Frame()
            frame.int32(1)
            frame.array(ports) { frame, port in
                frame.int32(1)
                frame.string(host)
                frame.int32(port)
            }
            return frame.bytes
        }
        var bytes = response([4000, 4001, 70_000, 4002])
        KafkaResponse.redirect(&bytes, host: "127.0.0.1", ports: [4000: 5000, 4002: 65_535])
        #expect(bytes == response([5000, 4001, 70_000, 65_535]))
        var elsewhere = response([4000], "127.0.0.2")
        KafkaResponse.redirect(&elsewhere, host: "127.0.0.1", ports: [4000: 5000])
        #expect(elsewhere == response([4000], "127.0.0.2"))
    }

    @Test(arguments: [0, 2, 3] as [Int16]) func noVersionIsOfferedThatCannotBeRead(version: Int16) {
        func response(_ latest: [(api: Int16, version: Int16)]) -> [UInt8] {
            var frame = Frame()
            frame.int32(1)
            frame.int16(0)
            if version >= 3 { frame.int8(UInt8(latest.count + 1)) } else { frame.int32(Int32(latest.count)) }
            for entry in latest {
                frame.int16(entry.api)
                frame.int16(0)
                frame.int16(entry.version)
                if version >= 3 { frame.int8(0) }
            }
            frame.int32(0)
            return frame.bytes
        }
        var bytes = response([(0, 10), (1, 16), (3, 12), (18, 3), (1, 4)])
        KafkaResponse.limitVersions(&bytes, version: version)
        #expect(bytes == response([(0, 8), (1, 11), (3, 12), (18, 3), (1, 4)]))
    }
}

struct Frame {
    var bytes: [UInt8] = []

    static func request(api: Int16, version: Int16, _ body: (inout Frame) -> Void) -> [UInt8] {
        var frame = Frame()
        frame.int16(api)
        frame.int16(version)
        frame.int32(17)
        frame.string("client")
        body(&frame)
        return frame.bytes
    }

    mutating func int8(_ value: UInt8) { bytes.append(value) }
    mutating func int16(_ value: Int16) { add(value) }
    mutating func int32(_ value: Int32) { add(value) }
    mutating func int64(_ value: Int64) { add(value) }

    mutating func string(_ text: String) {
        int16(Int16(text.utf8.count))
        bytes += text.utf8
    }

    mutating func array<Element>(_ elements: [Element], _ write: (inout Frame, Element) -> Void) {
        int32(Int32(elements.count))
        for element in elements { write(&self, element) }
    }

    private mutating func add(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.bigEndian) { bytes += $0 }
    }
}
