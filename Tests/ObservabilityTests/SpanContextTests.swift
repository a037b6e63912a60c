// SPDX-License-Identifier: Apache-2.0

import Logging
import Testing
import Tracing

@testable import Observability

@Suite struct SpanContextTests {
    private static let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    @Test func readsAndWrites() throws {
        let context = try #require(SpanContext(traceParent: Self.text))
        #expect(context.traceText == "4bf92f3577b34da6a3ce929d0e0e4736")
        #expect(context.span == 0x00f0_67aa_0ba9_02b7)
        #expect(context.isSampled)
        #expect(context.traceParent == Self.text)
    }

    /// Of flags that nobody knows nothing is passed on.
    @Test(arguments: [("00", "00", false), ("03", "03", true), ("ff", "03", true), ("fe", "02", false)])
    func flags(_ flags: String, _ passedOn: String, _ isSampled: Bool) throws {
        let context = try #require(SpanContext(traceParent: Self.text.dropLast(2) + flags))
        #expect(context.isSampled == isSampled)
        #expect(context.traceParent.suffix(2) == passedOn)
        let child = SpanContext(trace: context.trace, span: 1, isSampled: true, of: context)
        #expect(child.flags == context.flags | 1)
    }

    @Test(arguments: [
        "", "00", "00-1-2-01", "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-é",
    ]) func refuses(_ text: String) { #expect(SpanContext(traceParent: text) == nil) }

    @Test func carriersOfOthersAreReadAndWritten() {
        struct Texts: Extractor, Injector {
            func extract(key: String, from carrier: [String: String]) -> String? { carrier[key] }
            func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) {
                carrier[key] = value
            }
        }
        let tracer = Traced().tracer
        var context = ServiceContext.topLevel
        tracer.extract(["traceparent": Self.text], into: &context, using: Texts())
        var carrier: [String: String] = [:]
        tracer.inject(context, into: &carrier, using: Texts())
        #expect(carrier == ["traceparent": Self.text])
    }
}

/// A tracer whose spans go nowhere: its exporter does not run.
struct Traced {
    let tracer: OTLPTracer

    init(_ sampler: TraceSampler.Name = .parentOrOn, ratio: Double = 1) {
        tracer = OTLPTracer(Self.settings(1, sampler, ratio: ratio), logger: .init(label: "tests"))
    }

    static func settings(
        _ port: Int, _ sampler: TraceSampler.Name = .parentOrOn, ratio: Double = 1
    ) -> TraceSettings {
        guard let receiver = try? OTLPReceiver("http://127.0.0.1:\(port)", isBase: true) else {
            preconditionFailure("not an address")
        }
        return TraceSettings(
            receiver: receiver, sampler: TraceSampler(sampler, ratio: ratio), service: "tests", instance: "one")
    }

    var ended: [SpanRecord] { tracer.exporter.waiting }
}
