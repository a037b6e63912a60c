// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Gateway

@Suite struct SharesTests {
    private func owner(_ app: String, _ services: String..., isOneOfSeveral: Bool = true) -> Shares.Owner {
        Shares.Owner(app: AppID(app), services: Set(services), isOneOfSeveral: isOneOfSeveral)
    }

    /// - Returns: how many places it got before the first refusal.
    private func fill(_ shares: inout Shares, _ owner: Shares.Owner) -> Int {
        var count = 0
        while count < 10_000, shares.take(owner) { count += 1 }
        return count
    }

    @Test func oneStalledServiceHasHalfOfThePlaces() {
        var shares = Shares(limit: 2000)
        let stalled = fill(&shares, owner("a", "link", isOneOfSeveral: false))
        let other = fill(&shares, owner("a", "user", isOneOfSeveral: false))
        #expect(stalled == 1000 && other == 500)
    }

    /// However many services stall, the last one is served.
    @Test func thereIsRoomForTheNextOne() {
        var shares = Shares(limit: 2000)
        for app in ["a", "b", "c"] {
            for service in ["link", "user", "sync"] { _ = fill(&shares, owner(app, service)) }
        }
        let isTaken = shares.take(owner("d", "verification"))
        #expect(isTaken)
    }

    @Test func oneAppHasHalfOfThePlacesAndNoneOfItsServicesAllOfThose() {
        var shares = Shares(limit: 2000)
        let stalled = fill(&shares, owner("a", "link"))
        let (own, others) = (shares.take(owner("a", "user")), shares.take(owner("b", "link")))
        #expect(stalled == 500 && own && others)
        for service in ["user", "sync", "verification", "x", "y", "z"] { _ = fill(&shares, owner("a", service)) }
        #expect((990...1001).contains(shares.count))
    }

    /// With link stalled, what waits for it takes nothing from what the other services answer alone, or among themselves.
    @Test(arguments: [true, false]) func whatWaitsForAnotherServiceHoldsUpNothingElse(_ isOneOfSeveral: Bool) {
        var shares = Shares(limit: 2000)
        let stalled: [[String]] = [["link"], ["user", "link"], ["link", "user", "sync", "verification"]]
        for services in stalled {
            let group = Shares.Owner(app: "a", services: Set(services), isOneOfSeveral: isOneOfSeveral)
            let count = fill(&shares, group)
            #expect(count >= 100)
        }
        for services in [["user"], ["sync"], ["verification", "sync"], ["verification"]] {
            let group = Shares.Owner(app: "a", services: Set(services), isOneOfSeveral: isOneOfSeveral)
            for _ in 0..<100 {
                let isTaken = shares.take(group)
                #expect(isTaken)
                shares.giveBack(group)
            }
        }
    }

    @Test func whatIsGivenBackIsFree() {
        var shares = Shares(limit: 2)
        let one = owner("a", "link")
        for _ in 0..<5 {
            let count = fill(&shares, one)
            #expect(count == 1)
            shares.giveBack(one)
        }
        #expect(shares.count == 0)
    }

    @Test(arguments: [true, false]) func aSingleRequestAlwaysFits(_ isOneOfSeveral: Bool) {
        var shares = Shares(limit: 1)
        let first = shares.take(owner("a", "link", isOneOfSeveral: isOneOfSeveral))
        let second = shares.take(owner("b", "user", isOneOfSeveral: isOneOfSeveral))
        #expect(first && !second)
    }
}
