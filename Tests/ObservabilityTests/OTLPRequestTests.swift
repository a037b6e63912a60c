// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing
import Tracing

@testable import Observability

/// The bytes are those that OpenTelemetry's own Python package writes for the same.
@Suite struct OTLPRequestTests {
    private func instant(_ number: UInt64) -> DefaultTracerClock.Timestamp { .init(nanosecondsSinceEpoch: number) }

    @Test func aSpan() throws {
        let context = try #require(
            SpanContext(traceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
        var span = SpanRecord(
            context: context, parent: 255, name: "process é", kind: .consumer, start: 1_700_000_000_000_000_001)
        span.end = 1_700_000_000_000_000_301
        span.attributes = ["kafka.offset": 300]
        span.add(SpanEvent(name: "exception", at: instant(1_700_000_000_000_000_002), attributes: ["a": .bool(false)]))
        span.link(to: SpanContext(trace: .init(high: 1, low: 2), span: 3, isSampled: true))
        span.status = SpanStatus(code: .error, message: "m")
        var writer = ProtobufWriter()
        OTLPRequest.add(span, to: &writer)
        #expect(
            writer.bytes.hex == """
                0a104bf92f3577b34da6a3ce929d0e0e4736120800f067aa0ba902b7220800000000000000ff2a0a70726f6365737320c3a9300539\
                01002a36fe9c9717412d012a36fe9c97174a130a0c6b61666b612e6f6666736574120318ac025a1d0902002a36fe9c971712096578\
                63657074696f6e1a070a0161120210006a210a10000000000000000100000000000000021208000000000000000335010000007a05\
                12016d1802850101000000
                """)
    }

    @Test(arguments: [
        (SpanAttribute.double(0.5), "1209" + "21000000000000e03f"), (.string("x"), "1203" + "0a0178"),
        (.int64(-1), "120b" + "18ffffffffffffffffff01"), (.int32(-1), "120b" + "18ffffffffffffffffff01"),
        (.bool(true), "1202" + "1001"), (.string(""), "1202" + "0a00"), (.stringConvertible(7), "1203" + "0a0137"),
    ]) func attributes(_ value: SpanAttribute, _ bytes: String) {
        var span = SpanRecord(
            context: SpanContext(trace: .init(high: 1, low: 2), span: 3, isSampled: true), parent: nil, name: "",
            kind: .internal, start: 0)
        span.attributes = ["k": value]
        var writer = ProtobufWriter()
        OTLPRequest.add(span, to: &writer)
        #expect(writer.bytes.hex.contains("0a016b" + bytes))
    }

    /// A clock that was put back is no reason for a span that ends before it begins.
    @Test func aSpanEndsNoEarlierThanItBegins() {
        var span = SpanRecord(context: .random(isSampled: true), parent: nil, name: "s", kind: .server, start: 9)
        span.end = 3
        var writer = ProtobufWriter()
        OTLPRequest.add(span, to: &writer)
        #expect(writer.bytes.hex.contains("390900000000000000410900000000000000"))
    }

    @Test func whatIsSaidOfTheProcessAndOfTheNames() {
        let bytes = OTLPRequest.encode([], of: [.init("service.name", "mine")])
        let text = String(decoding: bytes, as: UTF8.self)
        for part in ["service.name", "mine", "identitybus", Release.version, SemanticNames.schema] {
            #expect(text.contains(part))
        }
    }
}
