// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Observability
import Tracing

/// The span of a request (docs/operations.md "Traces"). It names the route and never the path, in which ids stand.
struct RequestSpan {
    private let span: OTLPSpan
    /// Of the span; what comes of the request is told of in it.
    let context: SpanContext

    /// - Parameter parent: the caller's `traceparent`.
    init(_ parent: String?, _ tracer: OTLPTracer) {
        var around = ServiceContext.topLevel
        around.span = parent.flatMap { SpanContext(traceParent: $0) }
        span = tracer.startSpan("HTTP", context: around, ofKind: .server)
        // A span always has one.
        context = span.context.span ?? .random(isSampled: false)
    }

    /// - Parameter method: of those that are known, else `other`.
    func end(_ method: String, route: Route?, _ status: Int, scheme: String, _ note: AccessNote) {
        guard span.isRecording else { return }
        let method = SemanticNames.method(method)
        let name = method == SemanticNames.otherMethod ? "HTTP" : method
        span.operationName = route.map { "\(name) \($0.endpoint.path.text)" } ?? name
        var attributes: SpanAttributes = [
            SemanticNames.httpMethod: .string(method),
            SemanticNames.httpStatus: .int64(Int64(status)), SemanticNames.scheme: .string(scheme),
        ]
        attributes[SemanticNames.httpRoute] = route?.endpoint.path.text
        attributes[SemanticNames.app] = note.app?.text
        attributes[SemanticNames.reason] = note.code
        if status >= 500 {
            attributes[SemanticNames.errorType] = String(status)
            span.setStatus(SpanStatus(code: .error))
        }
        span.attributes = attributes
        span.end()
    }
}

/// The span in which a command is sent: until Kafka has it.
struct CommandSpan: Sendable {
    private let span: OTLPSpan
    private let id: CommandID

    /// Puts it into the command that it is of.
    init(_ command: inout OutgoingCommand, _ tracer: OTLPTracer) {
        id = command.id
        var around = ServiceContext.topLevel
        around.span = SpanContext(traceParent: command.trace.parent)
        span = tracer.startSpan(SemanticNames.send, context: around, ofKind: .producer)
        // Where nobody is told of it, the command stays in the one before.
        if span.isRecording, let own = span.context.span { command.trace.parent = own.traceParent }
    }

    func end(topic: String, _ error: KafkaError?) {
        guard span.isRecording else { return }
        span.operationName = "\(SemanticNames.send) \(topic)"
        var attributes: SpanAttributes = [
            SemanticNames.system: .string(SemanticNames.kafka), SemanticNames.operation: .string(SemanticNames.send),
            SemanticNames.operationType: .string(SemanticNames.send), SemanticNames.destination: .string(topic),
            // Chance has made it, or a key that is the caller's own: it is the access log's `ref` too.
            SemanticNames.messageID: .string(id.text),
        ]
        if let error {
            attributes[SemanticNames.errorType] = error.name
            span.setStatus(SpanStatus(code: .error))
        }
        span.attributes = attributes
        span.end()
    }
}
