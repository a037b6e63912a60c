// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Testing

@testable import Simulation

/// The oracle sees what it is there to see: topics written by hand, right and wrong.
@Suite struct OracleTests {
    private let log = SimulatedLog(Scheduler(seed: 1))
    private static let events = "identity.link.events.v1"

    init() { log.make(Self.events, partitions: 1) }

    private func event(_ offset: Int, _ index: Int, id: String? = nil, text: String = "") {
        let digits = { (number: Int, width: Int) in
            String(repeating: "0", count: width - String(number).count) + String(number)
        }
        let sequence = "identity.link.commands.v1[0]000000.\(digits(offset, 19)).\(digits(index, 4))"
        let id = id ?? "\(offset)-\(index)"
        let value =
            #"{"id":"\#(id)","source":"identitybus/link","sequence":"\#(sequence)","data":{"text":"\#(text)"}}"#
        log.write(Record(topic: Self.events, key: [1], value: Array(value.utf8)))
    }

    private func violations(isStorePutBack: Bool = false) -> [String] {
        Oracle(log: log, deployed: ["identitybus/link"], isStorePutBack: isStorePutBack, isLogLossy: false)
            .violations()
    }

    @Test func whatIsSentAgainAsItWasIsAllowed() {
        event(1, 0)
        event(1, 1)
        event(2, 0)
        event(1, 0)
        event(1, 1)
        #expect(violations().isEmpty)
    }

    @Test func twoMessagesOfOneIDThatDifferAreFound() {
        event(1, 0, text: "a")
        event(1, 0, text: "b")
        #expect(violations().contains { $0.hasPrefix("DOUBLED") })
        #expect(violations(isStorePutBack: true).isEmpty)
    }

    @Test func whatStandsInAnotherOrderIsFound() {
        event(2, 0)
        event(1, 0)
        #expect(violations().contains { $0.hasPrefix("MISORDERED") })
    }

    @Test func aMissingEventIsFound() {
        event(1, 1)
        #expect(violations().contains { $0.hasPrefix("LOST") })
    }
}
