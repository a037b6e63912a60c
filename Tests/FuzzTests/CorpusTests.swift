// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import TestKit
import Testing

/// What fuzzing found (`scripts/fuzz`), and a little more of it.
@Suite(.serialized) struct CorpusTests {
    /// Inputs are kept beside the tests, so that a new one needs no build.
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()

    /// The kept inputs of a target; where an envelope will do, the golden files too.
    private func inputs(_ target: FuzzTarget) throws -> [(name: String, bytes: [UInt8])] {
        var folders = [Self.folder.appending(path: "Corpus/\(target.rawValue)")]
        switch target {
        case .json, .envelope, .messages, .record, .story:
            folders.append(Self.folder.deletingLastPathComponent().appending(path: "ContractsTests/Golden"))
        default: break
        }
        return try folders.flatMap { folder in
            try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
                .sorted { $0.path < $1.path }
                .map { ($0.lastPathComponent, Array(try Data(contentsOf: $0))) }
        }
    }

    @Test(arguments: FuzzTarget.allCases) func whatWasFoundHolds(_ target: FuzzTarget) throws {
        let inputs = try inputs(target)
        #expect(!inputs.isEmpty)
        for (name, bytes) in inputs {
            #expect(throws: Never.self, "\(target.rawValue)/\(name)") { try target.run(bytes) }
        }
    }

    /// Without a look at what is covered, but in every run.
    @Test(arguments: FuzzTarget.allCases) func mutationsHold(_ target: FuzzTarget) throws {
        var random = SplitMix64(seed: testSeed)
        let inputs = try inputs(target).map(\.bytes)
        for round in 0..<200 {
            var bytes = inputs[Int(random.next() % UInt64(inputs.count))]
            for _ in 0...random.next() % 4 { mutate(&bytes, with: inputs, &random) }
            #expect(throws: Never.self, "\(target.rawValue), seed \(testSeed), round \(round): \(bytes.hex)") {
                try target.run(bytes)
            }
        }
    }

    private func mutate(_ bytes: inout [UInt8], with others: [[UInt8]], _ random: inout SplitMix64) {
        func below(_ limit: Int) -> Int { Int(random.next() % UInt64(max(limit, 1))) }
        let place = below(bytes.count)
        guard place < bytes.count else { return bytes.append(UInt8(truncatingIfNeeded: random.next())) }
        let end = min(bytes.count, place + below(16))
        switch random.next() % 5 {
        case 0: bytes[place] ^= 1 << UInt8(random.next() % 8)
        case 1: bytes[place] = UInt8(truncatingIfNeeded: random.next())
        case 2: bytes.removeSubrange(place..<end)
        case 3: bytes.insert(contentsOf: bytes[place..<end], at: below(bytes.count))
        default:
            let other = others[below(others.count)]
            let start = below(other.count)
            bytes.insert(contentsOf: other[start..<min(other.count, start + below(24))], at: place)
        }
    }
}
