// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import User

/// How long a code can be redeemed, and for how long it counts (U5, U10).
@Suite struct AuthCodeTests {
    @Test func aCodeEndsExactlyAtItsInstant() {
        let code = Fixture.code("c")
        let before = Timestamp(milliseconds: code.expires.milliseconds - 1)
        let state = UserState(codes: [code])
        #expect(code.refusal(app: "demo", now: before) == nil)
        #expect(state.outstandingCodes("demo", "anna", now: before) == 1)
        #expect(code.refusal(app: "demo", now: code.expires) == .authCodeExpired)
        #expect(state.outstandingCodes("demo", "anna", now: code.expires) == 0)
    }
}
