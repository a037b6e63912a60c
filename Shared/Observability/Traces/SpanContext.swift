// SPDX-License-Identifier: Apache-2.0

import Contracts
package import Tracing

/// Where a span stands: its trace, itself, and whether anybody is told of it. As `traceparent` says it (W3C Trace Context,
/// version 00).
package struct SpanContext: Sendable, Hashable {
    package struct TraceID: Sendable, Hashable {
        package var high: UInt64
        package var low: UInt64

        package init(high: UInt64, low: UInt64) {
            self.high = high
            self.low = low
        }

        static func random() -> TraceID { TraceID(high: .random(in: 1...UInt64.max), low: .random(in: 1...UInt64.max)) }

        var bytes: [UInt8] { high.bigEndianBytes + low.bigEndianBytes }
    }

    package var trace: TraceID
    package var span: UInt64
    /// Sampled (1), and whether the trace's id is random (2). The standard knows no others.
    package private(set) var flags: UInt8

    package init(trace: TraceID, span: UInt64, isSampled: Bool, of parent: SpanContext? = nil) {
        self.trace = trace
        self.span = span
        flags = (parent?.flags ?? 0) & ~Self.sampled | (isSampled ? Self.sampled : 0)
    }

    /// The first of a trace.
    package static func random(isSampled: Bool) -> SpanContext {
        SpanContext(trace: .random(), span: .random(in: 1...UInt64.max), isSampled: isSampled)
    }

    private static let sampled: UInt8 = 1
    private static let known: UInt8 = 3

    package var isSampled: Bool { flags & Self.sampled != 0 }

    /// 32 lower-case hex digits.
    package var traceText: String { trace.bytes.hex }

    /// - Returns: `nil` for what is not well formed.
    package init?(traceParent text: String) {
        var text = text
        guard let context = text.withUTF8({ Self.read($0) }) else { return nil }
        self = context
    }

    private init(trace: TraceID, span: UInt64, flags: UInt8) {
        (self.trace, self.span, self.flags) = (trace, span, flags & Self.known)
    }

    private static func read(_ text: UnsafeBufferPointer<UInt8>) -> SpanContext? {
        let dash = UInt8(ascii: "-")
        guard text.count == 55, text[2] == dash, text[35] == dash, text[52] == dash, number(text[..<2]) == 0,
            let high = number(text[3..<19]), let low = number(text[19..<35]), let span = number(text[36..<52]),
            let flags = number(text[53...]), high | low != 0, span != 0
        else { return nil }
        return SpanContext(trace: TraceID(high: high, low: low), span: span, flags: UInt8(flags))
    }

    /// Hex digits, none of them a capital letter; at most 16.
    private static func number(_ digits: Slice<UnsafeBufferPointer<UInt8>>) -> UInt64? {
        var number: UInt64 = 0
        for digit in digits {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | UInt64(digit - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | UInt64(digit - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return number
    }

    package var traceParent: String { "00-\(traceText)-\(span.bigEndianBytes.hex)-\([flags].hex)" }
}

extension UInt64 {
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}

extension ServiceContext {
    private enum Current: ServiceContextKey {
        typealias Value = SpanContext
        static var nameOverride: String? { "identitybus-span" }
    }

    private enum Next: ServiceContextKey {
        typealias Value = SpanContext
        static var nameOverride: String? { "identitybus-next-span" }
    }

    /// The span that another one is begun in.
    package var span: SpanContext? {
        get { self[Current.self] }
        set { self[Current.self] = newValue }
    }

    /// What the next span is to be, where that follows from something and is not for chance and the sampler to say.
    package var nextSpan: SpanContext? {
        get { self[Next.self] }
        set { self[Next.self] = newValue }
    }
}
