// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging
import Messaging
import TestKit
import Testing
import Tracing
import WireJSON

@testable import Observability
@testable import Runtime

@Suite struct RecordSpansTests {
    private static let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    private static let silent = String(parent.dropLast(2) + "00")

    private func tracer(_ sampler: TraceSampler.Name = .parentOrOn) throws -> OTLPTracer {
        let settings = TraceSettings(
            receiver: try OTLPReceiver("http://127.0.0.1:1", isBase: true), sampler: TraceSampler(sampler),
            service: "fake", instance: "one")
        return OTLPTracer(settings, logger: Logger(label: "tests"))
    }

    private func marked(
        _ parent: String?, offset: Int64 = 0, by service: String = "fake", _ sampler: TraceSampler.Name = .parentOrOn,
        header: String? = nil
    ) throws -> String? {
        var record = try Fixture.record(offset: offset)
        if let header { record.headers.append(Header("traceparent", Array(header.utf8))) }
        var attributes = Fixture.attributes()
        attributes.traceParent = parent
        attributes.takeTrace(from: record.headers)
        let sent = RecordSpans(service: service, tracer: try tracer(sampler)).mark(&attributes, of: record)
        #expect(sent == (parent ?? header).flatMap { SpanContext(traceParent: $0) })
        return attributes.traceParent
    }

    // MARK: The mark

    /// It stands in what is stored and published again.
    @Test func theSameRecordHasTheSameSpan() throws {
        let first = try #require(try marked(Self.parent))
        #expect(try marked(Self.parent) == first)
        #expect(first.hasPrefix("00-4bf92f3577b34da6a3ce929d0e0e4736-") && first.hasSuffix("-01"))
        #expect(first != Self.parent)
        // What every later version has to come to.
        #expect(first == "00-4bf92f3577b34da6a3ce929d0e0e4736-98adafba0841c6b5-01")
    }

    /// An event is read by several services, and a command that is repeated stands in the log twice.
    @Test func eachDecisionHasASpanOfItsOwn() throws {
        let spans = try [
            marked(Self.parent), marked(Self.parent, offset: 1), marked(Self.parent, by: "other"),
        ]
        #expect(Set(spans).count == 3)
    }

    @Test func whatNobodyIsToldOfIsPassedOnAsItIs() throws {
        #expect(try marked(Self.silent) == Self.silent)
        #expect(try marked(Self.parent, .alwaysOff) == Self.silent)
    }

    @Test func aSamplerMayTellOfWhatOthersDoNot() throws {
        let mark = try #require(try marked(Self.silent, .alwaysOn))
        #expect(mark.hasSuffix("-01") && mark != Self.parent)
    }

    /// So that those who come next do not decide anew, each for itself.
    @Test(arguments: [(TraceSampler.Name.parentOrOn, true), (.parentOrOff, false)])
    func aCommandWithoutATraceBeginsOne(_ sampler: TraceSampler.Name, _ isSampled: Bool) throws {
        let mark = try #require(try marked(nil, sampler))
        #expect(try marked(nil, sampler) == mark)
        #expect(SpanContext(traceParent: mark)?.isSampled == isSampled)
        #expect(try marked(nil, offset: 1, sampler)?.dropFirst(3).prefix(32) != mark.dropFirst(3).prefix(32))
        #expect(SpanContext(traceParent: try #require(try marked("nonsense", sampler)))?.isSampled == isSampled)
    }

    /// As OpenTelemetry's own clients of Kafka say it. The envelope's word comes first.
    @Test func aHeaderOfKafkaNamesTheTraceToo() throws {
        #expect(try marked(nil, header: Self.parent) == marked(Self.parent))
        #expect(try marked(nil, header: Self.silent) == Self.silent)
        #expect(try marked(Self.silent, header: Self.parent) == Self.silent)
    }

    // MARK: The loop

    private func log(_ loop: ManualLoop, _ ids: [String], parent: String? = parent) throws {
        loop.assign(0)
        let records = try ids.enumerated().map { offset, id in
            var attributes = Fixture.attributes(id: id)
            attributes.traceParent = parent
            let value = id == "bad" ? "refuse" : id
            return try Fixture.record(
                attributes, ["key": .string("hush-\(id)"), "value": .string(value)], offset: Int64(offset))
        }
        loop.assign(Fixture.topic, records)
        try loop.turn(20)
    }

    @Test func whatACommandLeadsToIsInItsSpan() throws {
        let tracer = try tracer()
        let loop = try ManualLoop(FakeService(), tracer: tracer)
        try log(loop, ["c1"])
        let batch = try #require(tracer.exporter.waiting.last)
        let span = try #require(tracer.exporter.waiting.first)
        #expect(tracer.exporter.waiting.count == 2)
        let parent = try #require(SpanContext(traceParent: Self.parent))
        #expect(span.name == "process identity.fake.commands.v1" && span.kind == .consumer)
        #expect(span.parent == parent.span && span.context.trace == parent.trace)
        #expect(span.links == [batch.context])
        #expect(batch.name == "process batch identity.fake.commands.v1" && batch.parent == nil)
        #expect(batch.links == [parent] && batch.context.trace != parent.trace)
        for message in loop.producer.sent {
            let read = try EnvelopeReader.read(value: message.value, headers: message.headers).attributes
            #expect(read.traceParent == span.context.traceParent)
            #expect(
                message.headers.first { $0.name == "traceparent" }?.value == Array(span.context.traceParent.utf8))
        }
        #expect(loop.producer.sent.count >= 2)
    }

    @Test func attributesTellNothingOfAPerson() throws {
        let tracer = try tracer()
        let loop = try ManualLoop(FakeService(), tracer: tracer)
        try log(loop, ["c1", "bad"])
        let spans = tracer.exporter.waiting
        #expect(spans.count == 3)
        var told: [[String: String]] = []
        for span in spans {
            var pairs: [String: String] = [:]
            span.attributes.forEach { name, value in
                switch value {
                case .string(let text): pairs[name] = text
                case .int64(let number): pairs[name] = String(number)
                default: pairs[name] = "?"
                }
            }
            told.append(pairs)
        }
        #expect(
            told[0] == [
                "messaging.system.name": "kafka", "messaging.operation.name": "process",
                "messaging.operation.type": "process", "messaging.destination.name": "identity.fake.commands.v1",
                "messaging.destination.partition.id": "0", "kafka.offset": "0",
                "messaging.consumer.group.name": "identity.fake", "cloudevents.event_type": "identity.fake.put.v1",
                "identitybus.app": "demo", "identitybus.outcome": "succeeded",
            ])
        #expect(told[1]["identitybus.outcome"] == "rejected")
        #expect(told[1]["identitybus.reason"] == "INSTALL_NOT_FOUND")
        #expect(
            told[2] == [
                "messaging.system.name": "kafka", "messaging.operation.name": "process",
                "messaging.operation.type": "process", "messaging.destination.name": "identity.fake.commands.v1",
                "messaging.consumer.group.name": "identity.fake", "messaging.batch.message_count": "2",
            ])
    }

    @Test func nobodyIsToldOfWhatIsNotSampled() throws {
        let tracer = try tracer()
        let loop = try ManualLoop(FakeService(), tracer: tracer)
        try log(loop, ["c1"], parent: Self.silent)
        #expect(tracer.exporter.waiting.isEmpty)
        let reply = try #require(loop.producer.sent.last)
        let read = try EnvelopeReader.read(value: reply.value, headers: reply.headers).attributes
        #expect(read.traceParent == Self.silent)
    }

    /// What a stranger says of itself may be anything.
    @Test func ofARefusedRecordNeitherAppNorTypeIsTold() throws {
        let tracer = try tracer()
        let loop = try ManualLoop(FakeService(), tracer: tracer)
        loop.assign(0)
        var attributes = Fixture.attributes("hush-type", app: "hush-app")
        attributes.traceParent = Self.parent
        loop.assign(Fixture.topic, [try Fixture.record(attributes)])
        try loop.turn(20)
        let span = try #require(tracer.exporter.waiting.first)
        #expect(span.status?.code == .error)
        #expect(span.attributes.get("error.type") == .string("APP_UNKNOWN"))
        span.attributes.forEach { #expect(!"\($1)".contains("hush")) }
    }
}
