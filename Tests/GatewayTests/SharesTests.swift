// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Gateway

@Suite struct SharesTests {
    private func owner(_ app: String, _ service: String, isOneOfSeveral: Bool = true) -> Shares.Owner {
        Shares.Owner(app: AppID(app), service: service, isOneOfSeveral: isOneOfSeveral)
    }

    /// - Returns: how many places it got before the first refusal.
    private func fill(_ shares: inout Shares, _ owner: Shares.Owner) -> Int {
        var count = 0
        while count < 10_000, shares.take(owner) { count += 1 }
        return count
    }

    @Test func oneStalledServiceHasHalfOfThePlaces() {
        var shares = Shares(limit: 2000)
        #expect(fill(&shares, owner("a", "link", isOneOfSeveral: false)) == 1000)
        #expect(fill(&shares, owner("a", "user", isOneOfSeveral: false)) > 0)
    }

    /// However many services stall, the last one is served.
    @Test func thereIsRoomForTheNextOne() {
        var shares = Shares(limit: 2000)
        for app in ["a", "b", "c"] {
            for service in ["link", "user", "sync"] { _ = fill(&shares, owner(app, service)) }
        }
        #expect(shares.take(owner("d", "verification")))
    }

    @Test func oneAppHasHalfOfThePlacesAndNoneOfItsServicesAllOfThose() {
        var shares = Shares(limit: 2000)
        #expect(fill(&shares, owner("a", "link")) == 500)
        #expect(shares.take(owner("a", "user")), "its calls of other services go on")
        #expect(shares.take(owner("b", "link")), "and so do others' of the same")
        for service in ["user", "sync", "verification", "x", "y", "z"] { _ = fill(&shares, owner("a", service)) }
        #expect(shares.count <= 1001)
    }

    @Test func whatIsGivenBackIsFree() {
        var shares = Shares(limit: 2)
        let one = owner("a", "link")
        for _ in 0..<5 {
            #expect(shares.take(one))
            #expect(!shares.take(one))
            shares.giveBack(one)
        }
        #expect(shares.count == 0)
    }

    @Test(arguments: [true, false]) func aSingleRequestAlwaysFits(_ isOneOfSeveral: Bool) {
        var shares = Shares(limit: 1)
        #expect(shares.take(owner("a", "link", isOneOfSeveral: isOneOfSeveral)))
        #expect(!shares.take(owner("b", "user", isOneOfSeveral: isOneOfSeveral)))
    }
}
