// SPDX-License-Identifier: Apache-2.0

/// Which traces are told of: OpenTelemetry's samplers, by their names.
package struct TraceSampler: Sendable {
    package enum Name: String, Sendable, CaseIterable {
        case alwaysOn = "always_on"
        case alwaysOff = "always_off"
        case ratio = "traceidratio"
        case parentOrOn = "parentbased_always_on"
        case parentOrOff = "parentbased_always_off"
        case parentOrRatio = "parentbased_traceidratio"
    }

    /// Whether a trace that somebody else began is told of because they do.
    private let followsParent: Bool
    /// A trace is told of whose number, of 63 bits, is below it.
    private let bound: UInt64

    /// - Parameter ratio: from 0 to 1, for the samplers that take one.
    package init(_ name: Name, ratio: Double = 1) {
        switch name {
        case .alwaysOn, .alwaysOff, .ratio: followsParent = false
        case .parentOrOn, .parentOrOff, .parentOrRatio: followsParent = true
        }
        switch name {
        case .alwaysOn, .parentOrOn: bound = 1 << 63
        case .alwaysOff, .parentOrOff: bound = 0
        case .ratio, .parentOrRatio: bound = UInt64(min(max(ratio, 0), 1) * 0x1p63)
        }
    }

    /// It follows from the trace's id, so that whoever has the same ratio decides the same.
    package func samples(_ trace: SpanContext.TraceID, after parent: SpanContext?) -> Bool {
        if followsParent, let parent { return parent.isSampled }
        return trace.low >> 1 < bound
    }
}
