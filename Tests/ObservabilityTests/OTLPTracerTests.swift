// SPDX-License-Identifier: Apache-2.0

import Testing
import Tracing

@testable import Observability

@Suite struct OTLPTracerTests {
    private struct Failure: Error {}

    @Test func aSpanIsInTheOneAround() throws {
        let traced = Traced()
        let parent = SpanContext.random(isSampled: true)
        var context = ServiceContext.topLevel
        context.span = parent
        let span = traced.tracer.startSpan("send", context: context, ofKind: .producer)
        let inner = traced.tracer.startSpan("process", context: span.context, ofKind: .consumer)
        inner.end()
        span.end()
        let (first, second) = (try #require(traced.ended.first), try #require(traced.ended.last))
        #expect(second.parent == parent.span && first.parent == second.context.span)
        #expect(Set([first, second].map(\.context.trace)) == [parent.trace])
        #expect(first.start <= first.end && second.start <= first.start)
    }

    /// What follows from something is not left to chance.
    @Test func whatASpanIsToBeCanBeSaid() throws {
        let traced = Traced(.alwaysOff)
        let own = SpanContext.random(isSampled: true)
        var context = ServiceContext.topLevel
        context.nextSpan = own
        let span = traced.tracer.startSpan("process", context: context)
        #expect(span.context.span == own && span.context.nextSpan == nil)
        span.end()
        #expect(traced.ended.map(\.context) == [own])
        #expect(traced.tracer.startSpan("send", context: span.context).context.span != own)
    }

    @Test func nothingIsKeptOfWhatNobodyIsToldOf() {
        let traced = Traced(.alwaysOff)
        let span = traced.tracer.startSpan("HTTP", context: .topLevel)
        span.operationName = "GET /"
        span.attributes["a"] = 1
        span.setStatus(SpanStatus(code: .error))
        #expect(!span.isRecording && span.operationName == "" && span.attributes.isEmpty)
        span.end()
        #expect(traced.ended.isEmpty)
        #expect(span.context.span?.isSampled == false)
    }

    @Test func aSpanEndsOnce() throws {
        let traced = Traced()
        let span = traced.tracer.startSpan("HTTP", context: .topLevel)
        span.operationName = "GET /"
        span.end()
        span.operationName = "POST /"
        span.end()
        #expect(traced.ended.map(\.name) == ["GET /"])
    }

    /// What an error says may be about a person.
    @Test func ofAnErrorOnlyItsTypeIsTold() throws {
        let traced = Traced()
        let span = traced.tracer.startSpan("HTTP", context: .topLevel)
        span.recordError(Failure())
        span.end()
        let event = try #require(traced.ended.first?.events.first)
        #expect(event.name == "exception" && event.attributes.count == 1)
        guard case .string(let type)? = event.attributes.get("exception.type") else {
            Issue.record("no type")
            return
        }
        #expect(type.contains("Failure"))
    }

    @Test func linksAndEventsAreBounded() throws {
        let traced = Traced()
        let span = traced.tracer.startSpan("process", context: .topLevel)
        for _ in 0..<200 {
            var context = ServiceContext.topLevel
            context.span = .random(isSampled: true)
            span.addLink(SpanLink(context: context, attributes: [:]))
            span.addEvent(SpanEvent(name: "e"))
        }
        // It leads nowhere.
        span.addLink(SpanLink(context: .topLevel, attributes: [:]))
        span.end()
        let record = try #require(traced.ended.first)
        #expect(record.links.count == 128 && record.droppedLinks == 72)
        #expect(record.events.count == 128 && record.droppedEvents == 72)
    }
}
