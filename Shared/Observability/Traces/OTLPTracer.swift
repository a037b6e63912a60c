// SPDX-License-Identifier: Apache-2.0

package import Logging
import Synchronization
package import Tracing

/// Begins spans, and sends those that are told of to an OpenTelemetry collector (docs/operations.md "Traces"). Handed to those
/// who use it: nothing is looked up where there is none.
package final class OTLPTracer: Tracer {
    package typealias Span = OTLPSpan

    package let sampler: TraceSampler
    /// To be run as long as there may be spans.
    package let exporter: SpanExporter

    package init(_ settings: TraceSettings, logger: Logger) {
        sampler = settings.sampler
        exporter = SpanExporter(settings, logger: logger)
    }

    package func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> OTLPSpan {
        var context = context()
        let parent = context.span
        let own = context.nextSpan ?? next(after: parent)
        context.nextSpan = nil
        context.span = own
        guard own.isSampled else { return OTLPSpan(context, nil, exporter) }
        let record = SpanRecord(
            context: own, parent: parent?.span, name: operationName, kind: kind,
            start: instant().nanosecondsSinceEpoch)
        return OTLPSpan(context, record, exporter)
    }

    private func next(after parent: SpanContext?) -> SpanContext {
        let trace = parent?.trace ?? .random()
        return SpanContext(
            trace: trace, span: .random(in: 1...UInt64.max), isSampled: sampler.samples(trace, after: parent),
            of: parent)
    }

    /// What is ended is sent within the delay of the settings; at the end of the process, ``exporter`` waits for it.
    package func forceFlush() {}

    package func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        context.span = extractor.extract(key: "traceparent", from: carrier).flatMap { SpanContext(traceParent: $0) }
    }

    package func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let span = context.span else { return }
        injector.inject(span.traceParent, forKey: "traceparent", into: &carrier)
    }
}

/// One step of a trace, while it lasts. Nothing is kept of one that nobody is told of.
package final class OTLPSpan: Tracing.Span {
    package let context: ServiceContext
    /// `nil` when it has ended, or nobody is told of it.
    private let record: Mutex<SpanRecord?>
    private let exporter: SpanExporter

    fileprivate init(_ context: ServiceContext, _ record: SpanRecord?, _ exporter: SpanExporter) {
        self.context = context
        self.record = Mutex(record)
        self.exporter = exporter
    }

    package var isRecording: Bool { record.withLock { $0 != nil } }

    package var operationName: String {
        get { record.withLock { $0?.name ?? "" } }
        set { record.withLock { $0?.name = newValue } }
    }

    package var attributes: SpanAttributes {
        get { record.withLock { $0?.attributes ?? [:] } }
        set { record.withLock { $0?.attributes = newValue } }
    }

    package func setStatus(_ status: SpanStatus) { record.withLock { $0?.status = status } }

    package func addEvent(_ event: SpanEvent) { record.withLock { $0?.add(event) } }

    /// Of an error its type: what it says may be about a person.
    package func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        var attributes = attributes
        attributes[SemanticNames.exceptionType] = String(reflecting: type(of: error))
        addEvent(SpanEvent(name: SemanticNames.exception, at: instant(), attributes: attributes))
    }

    package func addLink(_ link: SpanLink) {
        guard let span = link.context.span else { return }
        record.withLock { $0?.link(to: span) }
    }

    package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        let ended = record.withLock { record in
            defer { record = nil }
            return record
        }
        guard var ended else { return }
        ended.end = instant().nanosecondsSinceEpoch
        exporter.add(ended)
    }
}

/// What is told of a span.
struct SpanRecord: Sendable {
    /// Of links, and of events; OpenTelemetry's usual limit.
    static let limit = 128

    let context: SpanContext
    let parent: UInt64?
    var name: String
    let kind: SpanKind
    /// Nanoseconds since 1970.
    let start: UInt64
    var end: UInt64 = 0
    var attributes: SpanAttributes = [:]
    var status: SpanStatus?
    private(set) var links: [SpanContext] = []
    private(set) var events: [SpanEvent] = []
    /// How many were more than the limit.
    private(set) var droppedLinks = 0
    private(set) var droppedEvents = 0

    init(context: SpanContext, parent: UInt64?, name: String, kind: SpanKind, start: UInt64) {
        self.context = context
        self.parent = parent
        self.name = name
        self.kind = kind
        self.start = start
    }

    mutating func link(to span: SpanContext) {
        if links.count < Self.limit { links.append(span) } else { droppedLinks += 1 }
    }

    mutating func add(_ event: SpanEvent) {
        if events.count < Self.limit { events.append(event) } else { droppedEvents += 1 }
    }
}
