// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Observability
import Storage
import Tracing

/// The spans of the records that a service decides (docs/operations.md "Traces").
///
/// A message says in its `traceparent` in which span it came to be. What a service publishes is stored before it is published,
/// and published again byte for byte, by whoever comes next: so the ids of its spans follow from the record that it decides,
/// and not from chance.
struct RecordSpans: Sendable {
    let service: String
    let tracer: OTLPTracer

    /// Puts the span in which a record is decided in the place of the one that it comes from: all that follows from the record
    /// copies it.
    /// - Returns: the one that it comes from.
    func mark(_ attributes: inout EventAttributes, of record: KafkaRecord) -> SpanContext? {
        let parent = attributes.traceParent.flatMap { SpanContext(traceParent: $0) }
        let isOver = parent.map { !$0.isSampled && !tracer.sampler.samples($0.trace, after: $0) } ?? false
        if !isOver { attributes.traceParent = span(of: record, after: parent).traceParent }
        return parent
    }

    /// The span in which a record is decided. Where nobody is told of it, the one before it: what comes next hangs on that.
    private func span(of record: KafkaRecord, after parent: SpanContext?) -> SpanContext {
        let place = record.topicPartition
        let own = DerivedID.span(
            service: service, topic: place.topic, partition: place.partition, offset: record.offset,
            time: record.timestampMs)
        let trace = parent?.trace ?? SpanContext.TraceID(high: own.traceHigh, low: own.traceLow)
        let isSampled = tracer.sampler.samples(trace, after: parent)
        return SpanContext(
            trace: trace, span: isSampled ? own.span : parent?.span ?? own.span, isSampled: isSampled, of: parent)
    }

    /// What came of a record of a batch.
    struct Decided {
        var record: KafkaRecord
        /// With the mark.
        var attributes: EventAttributes
        /// The span that it was sent in.
        var parent: SpanContext?
        /// `nil` when its sender is not known.
        var app: String?
        var entry: Entry
    }

    /// Tells of a batch that was committed: a span for itself, and one for each of its records that is told of.
    /// - Parameters:
    ///   - count: of all records of the batch.
    ///   - group: of a topic.
    func tell(_ decided: [Decided], of count: Int, took: Duration, group: (String) -> String?) {
        let end = DefaultTracerClock.now
        let start = DefaultTracerClock.Timestamp(
            nanosecondsSinceEpoch: end.nanosecondsSinceEpoch - UInt64(max(0, took.inNanoseconds)))
        let told: [(Decided, SpanContext)] = decided.compactMap { one in
            one.attributes.traceParent.flatMap { SpanContext(traceParent: $0) }
                .flatMap { $0.isSampled ? (one, $0) : nil }
        }
        guard !told.isEmpty else { return }
        let batch = batch(told.map(\.0), of: count, group, start)
        for (one, own) in told {
            if let parent = one.parent { batch.addLink(Self.link(parent)) }
            var context = ServiceContext.topLevel
            (context.span, context.nextSpan) = (one.parent, own)
            let span = tracer.startSpan(
                "\(SemanticNames.process) \(one.record.topicPartition.topic)", context: context, ofKind: .consumer,
                at: start)
            if let inBatch = batch.context.span { span.addLink(Self.link(inBatch)) }
            span.attributes = attributes(of: one, group)
            if one.entry.outcome == .deadLettered {
                span.setStatus(SpanStatus(code: .error))
            }
            span.end(at: end)
        }
        batch.end(at: end)
    }

    /// In a trace of its own: what it decides comes from many.
    private func batch(
        _ decided: [Decided], of count: Int, _ group: (String) -> String?, _ start: DefaultTracerClock.Timestamp
    ) -> OTLPSpan {
        let topics = Set(decided.map(\.record.topicPartition.topic))
        let topic = topics.count == 1 ? topics.first : nil
        var context = ServiceContext.topLevel
        context.nextSpan = .random(isSampled: true)
        let span = tracer.startSpan(
            topic.map { "\(SemanticNames.process) batch \($0)" } ?? "\(SemanticNames.process) batch", context: context,
            ofKind: .consumer, at: start)
        var attributes = Self.operation
        attributes[SemanticNames.batchCount] = count
        if let topic {
            attributes[SemanticNames.destination] = topic
            attributes[SemanticNames.group] = group(topic)
        }
        span.attributes = attributes
        return span
    }

    /// Nothing that a person could be known by: no key, no subject, and no id of a command, which its sender chooses.
    private func attributes(of one: Decided, _ group: (String) -> String?) -> SpanAttributes {
        let place = one.record.topicPartition
        var attributes = Self.operation
        attributes[SemanticNames.destination] = place.topic
        attributes[SemanticNames.partition] = String(place.partition)
        attributes[SemanticNames.offset] = one.record.offset
        attributes[SemanticNames.group] = group(place.topic)
        attributes[SemanticNames.outcome] = one.entry.outcome.rawValue
        attributes[SemanticNames.reason] = one.entry.reason
        // What a stranger says of itself may be anything.
        if let app = one.app {
            attributes[SemanticNames.app] = app
            attributes[SemanticNames.eventType] = one.attributes.type
        }
        attributes[SemanticNames.errorType] = one.entry.errorType
        return attributes
    }

    private static let operation: SpanAttributes = [
        SemanticNames.system: .string(SemanticNames.kafka), SemanticNames.operation: .string(SemanticNames.process),
        SemanticNames.operationType: .string(SemanticNames.process),
    ]

    private static func link(_ span: SpanContext) -> SpanLink {
        var context = ServiceContext.topLevel
        context.span = span
        return SpanLink(context: context, attributes: [:])
    }
}

extension SpanContext {
    /// As OpenTelemetry's own clients of Kafka say it, and all our messages beside their envelope.
    init?(headers: [Header]) {
        var value: [UInt8]?
        // By index: without the optimiser, an iterator takes a block of the heap for each element.
        for index in headers.indices where headers[index].name == HeaderName.traceParent {
            value = headers[index].value
            break
        }
        guard let text = value.flatMap({ String(validating: $0, as: UTF8.self) }) else { return nil }
        self.init(traceParent: text)
    }
}

extension EventAttributes {
    /// Takes over what Kafka's headers say of the trace, where the envelope says nothing.
    mutating func takeTrace(from headers: [Header]) {
        if traceParent == nil { traceParent = SpanContext(headers: headers)?.traceParent }
    }
}

extension ServiceLoop {
    /// Tells the spans of a batch that was committed, but of what a replay decides again: it was told of once.
    func tell(
        _ spans: RecordSpans, _ records: [KafkaRecord], _ batch: [Inbound<Service.Command>], _ entries: [Entry],
        took: Duration
    ) {
        var decided: [RecordSpans.Decided] = []
        var rest = entries[...]
        for place in batch.indices {
            // Not every record comes to an entry, and they have one order.
            guard let entry = rest.first, entry.place == records[place].topicPartition,
                entry.position.offset == records[place].offset
            else { continue }
            rest.removeFirst()
            guard !pastTimes.isPast(records[place]) else { continue }
            switch batch[place] {
            case .accepted(let command):
                decided.append(
                    .init(
                        record: command.record, attributes: command.attributes, parent: command.parent,
                        app: command.app.id.text, entry: entry))
            case .refused(let refusal):
                if let answer = refusal.answer {
                    decided.append(
                        .init(
                            record: refusal.record, attributes: answer.attributes, parent: refusal.parent, entry: entry)
                    )
                }
            case .skipped: break
            }
        }
        spans.tell(decided, of: records.count, took: took) { [consumers] topic in
            consumers?.group(of: topic)
        }
    }
}
