// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@Suite struct HandledLettersTests {
    private let place = LetterPlace(partition: 3, offset: 14, written: 1_700_000_000_000)

    private func handling(_ act: LetterHandling.Act, _ run: String, _ time: Int64) -> LetterHandling {
        LetterHandling(act, place, id: "\(run)-\(time)", run: run, by: run, time: time)
    }

    @Test func whatIsWrittenIsRead() throws {
        let command = LetterHandling.Command(
            id: "c1", place: TopicPartition(topic: "identity.link.commands.v1", partition: 2), offset: 8, keyID: "k",
            isEdited: true)
        for act in LetterHandling.Act.allCases {
            let written = LetterHandling(
                act, place, id: "h1", run: "r1", by: "eva", note: "INC-4711", command: act == .sent ? command : nil,
                answer: act == .answered ? .init(status: "rejected", reason: "ID_REUSED") : nil,
                digest: act == .claimed ? "abc" : nil, time: 17)
            let record = try written.record(to: "t", service: "link", key: [1], now: .now)
            #expect(record.partition == LetterHandling.partition && record.key == [1])
            var read = KafkaRecord(
                topicPartition: TopicPartition(topic: "t", partition: 0), offset: 1, timestampMs: 17, clock: .broker,
                key: nil, value: record.value, headers: record.headers)
            #expect(LetterHandling(read) == written)
            read.clock = .producer
            #expect(LetterHandling(read)?.isDated == false)
            read.topicPartition = TopicPartition(topic: "t", partition: 1)
            #expect(LetterHandling(read) == nil, "only one partition has an order")
        }
        for value in ["", "{}", "[]", #"{"type":"identity.dlq.handling.v1","data":{"act":"eaten"}}"#] {
            let record = KafkaRecord(
                topicPartition: TopicPartition(topic: "t", partition: 0), offset: 0, key: nil, value: Array(value.utf8))
            #expect(LetterHandling(record) == nil, "\(value)")
        }
    }

    @Test func onlyOneHoldsALetter() {
        var letters = HandledLetters()
        letters.take(handling(.claimed, "a", 0))
        letters.take(handling(.claimed, "b", HandledLetters.lease - 1))
        #expect(letters[place].claim?.run == "a" && letters[place].inDoubt == nil)
        letters.take(handling(.dismissed, "b", HandledLetters.lease - 1))
        #expect(letters[place].isOpen)
        letters.take(handling(.claimed, "b", HandledLetters.lease))
        #expect(letters[place].claim?.run == "b" && letters[place].inDoubt?.run == "a")
        letters.take(handling(.released, "a", HandledLetters.lease + 1))
        #expect(letters[place].claim?.run == "b")
        letters.take(handling(.sent, "b", HandledLetters.lease + 2))
        letters.take(handling(.claimed, "a", 9 * HandledLetters.lease))
        #expect(!letters[place].isOpen && letters[place].claim == nil && letters[place].closing?.run == "b")
        // A topic that was made anew has other letters under the same offsets.
        #expect(letters[LetterPlace(partition: 3, offset: 14, written: 5)].isOpen)
    }

    /// Somebody's clock can say any time, and so hold a letter for ever or end another's claim.
    @Test func onlyTheBrokerSaysWhenALetterWasClaimed() {
        var letters = HandledLetters()
        func claim(_ run: String, _ time: Int64, isDated: Bool) {
            letters.take(
                LetterHandling(
                    .claimed, place, id: run, run: run, by: run, digest: "of \(run)", time: time, isDated: isDated))
        }
        claim("forger", 3_600_000, isDated: false)
        #expect(letters[place].claim == nil && letters[place].inDoubt == nil && letters[place].digests.isEmpty)
        claim("a", 0, isDated: true)
        claim("forger", 3_600_000, isDated: false)
        #expect(letters[place].claim?.run == "a" && letters[place].digests == ["of a"])
        claim("b", HandledLetters.lease, isDated: true)
        #expect(letters[place].claim?.run == "b" && letters[place].digests == ["of a", "of b"])
    }

    /// Against a model that goes through the whole history for every question.
    @Test(arguments: 0..<40) func whatIsOpenFollowsFromTheHistory(_ seed: UInt64) {
        var random = Numbers(state: seed)
        var letters = HandledLetters()
        var history: [LetterHandling] = []
        var time: Int64 = 0
        for step in 0..<200 {
            time += Int64(random.next() % 4) * HandledLetters.lease / 3
            let place = LetterPlace(partition: 0, offset: Int64(random.next() % 3), written: Int64(random.next() % 2))
            let acts = LetterHandling.Act.allCases
            let act = random.next() % 3 == 0 ? acts[Int(random.next() % UInt64(acts.count))] : .claimed
            let run = "r\(random.next() % 3)"
            let handling = LetterHandling(act, place, id: "\(step)", run: run, by: run, time: time)
            letters.take(handling)
            history.append(handling)
            for place in Set(history.map(\.letter)) {
                let model = Model(history.filter { $0.letter == place })
                #expect(letters[place].isOpen == model.isOpen, "seed \(seed), step \(step)")
                #expect(
                    letters[place].claim?.id == (model.isOpen ? model.holder?.id : nil), "seed \(seed), step \(step)")
            }
        }
        #expect(Set(letters.closed) == Set(history.map(\.letter)).filter { !letters[$0].isOpen })
    }

    /// What is so of one letter, asked from the end of its history.
    private final class Model {
        let history: [LetterHandling]
        /// Answers that were given.
        private var holders: [Int: LetterHandling?] = [:]

        init(_ history: [LetterHandling]) { self.history = history }

        var isOpen: Bool { !history.indices.contains { closes($0) } }

        private func closes(_ index: Int) -> Bool {
            switch history[index].act {
            case .sent: true
            case .dismissed: holder(before: index).map { $0.run == history[index].run || isOver($0, index) } ?? true
            default: false
            }
        }

        var holder: LetterHandling? { holder(before: history.endIndex) }

        /// The last claim that counted and that its run has not given back.
        private func holder(before end: Int) -> LetterHandling? {
            if let known = holders[end] { return known }
            let found = findHolder(before: end)
            holders[end] = .some(found)
            return found
        }

        private func findHolder(before end: Int) -> LetterHandling? {
            guard let index = history[..<end].indices.last(where: { counts($0) }) else { return nil }
            let claim = history[index]
            let isReleased = history[(index + 1)..<end].contains { $0.act == .released && $0.run == claim.run }
            return isReleased ? nil : claim
        }

        private func counts(_ index: Int) -> Bool {
            let claim = history[index]
            guard claim.act == .claimed, !history[..<index].indices.contains(where: { closes($0) }) else {
                return false
            }
            return holder(before: index).map { $0.run == claim.run || isOver($0, index) } ?? true
        }

        private func isOver(_ claim: LetterHandling, _ index: Int) -> Bool {
            history[index].time >= claim.time + HandledLetters.lease
        }
    }

    /// SplitMix64.
    private struct Numbers {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var value = state
            value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return value ^ (value >> 31)
        }
    }
}
