// SPDX-License-Identifier: Apache-2.0

import TestKit
import Testing

@testable import Observability

@Suite struct TraceSamplerTests {
    private func parent(_ isSampled: Bool) -> SpanContext { .random(isSampled: isSampled) }

    @Test(arguments: TraceSampler.Name.allCases) func whoBeganTheTraceDecides(_ name: TraceSampler.Name) {
        let sampler = TraceSampler(name, ratio: 0)
        let trace = parent(true).trace
        let isOn = [.alwaysOn, .parentOrOn].contains(name)
        #expect(sampler.samples(trace, after: nil) == isOn)
        switch name {
        case .alwaysOn, .alwaysOff, .ratio:
            #expect(sampler.samples(trace, after: parent(true)) == isOn)
            #expect(sampler.samples(trace, after: parent(false)) == isOn)
        case .parentOrOn, .parentOrOff, .parentOrRatio:
            #expect(sampler.samples(trace, after: parent(true)))
            #expect(!sampler.samples(trace, after: parent(false)))
        }
    }

    @Test(arguments: [0, 0.1, 0.5, 1]) func aPartOfTheTraces(_ ratio: Double) {
        var random = SplitMix64(seed: testSeed)
        let sampler = TraceSampler(.ratio, ratio: ratio)
        let count = (0..<10_000).count { _ in
            sampler.samples(.init(high: random.next(), low: random.next()), after: nil)
        }
        #expect(abs(Double(count) / 10_000 - ratio) < 0.02)
    }

    /// As others do it, by the trace's id alone.
    @Test func theSameTraceIsDecidedTheSame() {
        let half = TraceSampler(.ratio, ratio: 0.5)
        #expect(half.samples(.init(high: .max, low: 0x7fff_ffff_ffff_ffff), after: nil))
        #expect(!half.samples(.init(high: 1, low: 0x8000_0000_0000_0000), after: nil))
        #expect(TraceSampler(.ratio, ratio: 1).samples(.init(high: 0, low: .max), after: nil))
    }
}
