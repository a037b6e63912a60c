// SPDX-License-Identifier: Apache-2.0

import Observability
import Testing

@testable import Runtime

@Suite struct LoopHealthTests {
    /// The migration of a large store takes longer than a loop may stand still: who restarts the process meanwhile would
    /// never see its end.
    @Test func aLoopThatHasNotStartedIsNotStuck() {
        let health = LoopHealth(stuckAfter: .zero)
        #expect(health.report.live.filter { !$0.ok }.isEmpty)
        #expect(!health.report.ready.filter { !$0.ok }.isEmpty)
        health.started()
        #expect(health.report.live.filter { !$0.ok }.map(\.name) == ["loop"])
    }
}
