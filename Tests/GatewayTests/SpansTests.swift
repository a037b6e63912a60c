// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Logging
import Messaging
import Runtime
import Testing
import Tracing
import WireJSON

@testable import Gateway
@testable import Observability

@Suite struct SpansTests {
    private static let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    private func tracer(_ sampler: TraceSampler.Name = .parentOrOn) throws -> OTLPTracer {
        let settings = TraceSettings(
            receiver: try OTLPReceiver("http://127.0.0.1:1", isBase: true), sampler: TraceSampler(sampler),
            service: "gateway", instance: "one")
        return OTLPTracer(settings, logger: Logger(label: "tests"))
    }

    private func command(_ trace: TraceContext) -> OutgoingCommand {
        OutgoingCommand(
            id: "c-1", type: CommandType(LinkRequest.self), data: [:],
            caller: Caller(app: AppSettings(id: "demo"), principal: Principal(kind: .apiKey("k"), scopes: [])),
            trace: trace)
    }

    private func route(_ path: String) throws -> Route { try #require(Route.at(path, .api, and: []).first) }

    @Test func aRequestAndItsCommandAreOneTrace() throws {
        let tracer = try tracer()
        let request = RequestSpan(Self.parent, tracer)
        var command = command(TraceContext(request.context, state: "a=b"))
        let sending = CommandSpan(&command, tracer)
        #expect(command.trace.state == "a=b" && command.trace.id == "4bf92f3577b34da6a3ce929d0e0e4736")
        sending.end(topic: "identity.link.commands.v1", nil)
        var note = AccessNote()
        note.app = "demo"
        request.end("POST", route: try route("/v2/users/hush-install/link"), 200, scheme: "https", note)
        let (send, server) = (try #require(tracer.exporter.waiting.first), try #require(tracer.exporter.waiting.last))
        #expect(command.trace.parent == send.context.traceParent)
        #expect(send.parent == server.context.span && server.parent == 0x00f0_67aa_0ba9_02b7)
        #expect(send.name == "send identity.link.commands.v1" && send.kind == .producer)
        #expect(server.name == "POST /v2/users/{install_id}/link" && server.kind == .server)
        #expect(
            server.attributes == [
                "http.request.method": "POST", "http.route": "/v2/users/{install_id}/link",
                "http.response.status_code": .int64(200), "url.scheme": "https", "identitybus.app": "demo",
            ])
        #expect(
            send.attributes == [
                "messaging.system.name": "kafka", "messaging.operation.name": "send",
                "messaging.operation.type": "send",
                "messaging.destination.name": "identity.link.commands.v1", "messaging.message.id": "c-1",
            ])
    }

    @Test func whatIsNotKnownIsNotNamed() throws {
        let tracer = try tracer()
        RequestSpan(nil, tracer).end("other", route: nil, 503, scheme: "http", AccessNote())
        let span = try #require(tracer.exporter.waiting.first)
        #expect(span.name == "HTTP" && span.parent == nil && span.status?.code == .error)
        #expect(
            span.attributes == [
                "http.request.method": "_OTHER", "http.response.status_code": .int64(503), "url.scheme": "http",
                "error.type": "503",
            ])
    }

    @Test func whatNobodyIsToldOfKeepsItsTrace() throws {
        let tracer = try tracer()
        let request = RequestSpan(Self.parent.dropLast(2) + "00", tracer)
        let before = TraceContext(request.context, state: nil)
        var command = command(before)
        let sending = CommandSpan(&command, tracer)
        sending.end(topic: "t", nil)
        request.end("GET", route: nil, 200, scheme: "http", AccessNote())
        #expect(tracer.exporter.waiting.isEmpty)
        #expect(command.trace == before && before.parent.hasSuffix("-00"))
        #expect(before.id == "4bf92f3577b34da6a3ce929d0e0e4736")
    }

    @Test func aCommandThatKafkaDoesNotTake() throws {
        let tracer = try tracer()
        var command = command(TraceContext(parent: nil, state: nil))
        CommandSpan(&command, tracer).end(topic: "t", KafkaError(code: -192, message: "timed out"))
        let span = try #require(tracer.exporter.waiting.first)
        #expect(span.status?.code == .error)
        #expect(span.attributes.get("error.type") == .string("_MSG_TIMED_OUT"))
    }
}
