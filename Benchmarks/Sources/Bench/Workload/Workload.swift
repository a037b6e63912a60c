// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Messaging

/// What is sent, the same in every run of the same size.
///
/// Persons get a new install in three requests of five and ask for the link of their present one again in the others
/// (an app that starts). Of every 100 commands 5 are repeated byte for byte some time later, and 1 is poison: half of
/// these are no JSON, half are signed for other bytes.
struct Workload {
    /// Requests that register the installs, to be decided before.
    let registrations: [ProducerRecord]
    let records: [ProducerRecord]
    /// The replies that the records lead to: those that are no JSON get none.
    let replies: Int
    let deadLetters: Int

    private static let installsPerPerson = 3

    init(commands count: Int, topic: String, seed: UInt64 = 1) throws {
        let factory = CommandFactory(topic: topic)
        var random = SeededGenerator(seed: seed)
        let persons = max(1, count / 5)
        var current = [Int?](repeating: nil, count: persons)
        var installs = 0
        var records: [ProducerRecord] = []
        records.reserveCapacity(count)
        var garbled = 0
        var forged = 0
        for number in 0..<count {
            let lot = Int.random(in: 0..<1000, using: &random)
            let person = Int.random(in: 0..<persons, using: &random)
            if lot < 50, records.count > 100 {
                records.append(Self.recent(records, &random))
                // A repeated piece of poison is one more piece.
                if records.last?.timestampMs == 1 { garbled += 1 }
                if records.last?.timestampMs == 2 { forged += 1 }
                continue
            }
            var install = current[person]
            if install == nil || Int.random(in: 0..<5, using: &random) < 3 {
                install = installs
                installs += 1
            }
            var record = try factory.link(install: install ?? 0, person: person, id: "command-\(number)")
            switch lot {
            case 50..<55:
                record = factory.truncated(record)
                record.timestampMs = 1
                garbled += 1
            case 55..<60:
                record = factory.withBadSignature(record)
                record.timestampMs = 2
                forged += 1
            default: current[person] = install
            }
            records.append(record)
        }
        registrations = try (0..<max(1, installs)).map { try factory.registration(install: $0) }
        self.records = records.map { record in
            var record = record
            record.timestampMs = nil
            return record
        }
        replies = count - garbled
        deadLetters = garbled + forged
    }

    private static func recent(_ records: [ProducerRecord], _ random: inout SeededGenerator) -> ProducerRecord {
        records[Int.random(in: max(0, records.count - 20_000)..<records.count, using: &random)]
    }
}
