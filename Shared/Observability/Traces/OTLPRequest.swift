// SPDX-License-Identifier: Apache-2.0

import Contracts
import Tracing

/// An `ExportTraceServiceRequest` of the OpenTelemetry protocol, in protobuf: every collector takes it. The numbers are those
/// of `opentelemetry/proto/trace/v1/trace.proto` 1.x, which never change.
enum OTLPRequest {
    static func encode(_ spans: [SpanRecord], of resource: [TraceSettings.Attribute]) -> [UInt8] {
        var request = ProtobufWriter()
        request.add(1) { resourceSpans in
            resourceSpans.add(1) { message in
                for attribute in resource { add(1, attribute.name, .string(attribute.value), to: &message) }
            }
            resourceSpans.add(2) { scopeSpans in
                scopeSpans.add(1) { scope in
                    scope.add(1, "identitybus")
                    scope.add(2, Release.version)
                }
                for span in spans { scopeSpans.add(2) { add(span, to: &$0) } }
                scopeSpans.add(3, SemanticNames.schema)
            }
            resourceSpans.add(3, SemanticNames.schema)
        }
        return request.bytes
    }

    static func add(_ span: SpanRecord, to message: inout ProtobufWriter) {
        message.add(1, bytes: span.context.trace.bytes)
        message.add(2, bytes: span.context.span.bigEndianBytes)
        if let parent = span.parent { message.add(4, bytes: parent.bigEndianBytes) }
        message.add(5, span.name)
        message.add(6, number: number(of: span.kind))
        message.add(7, fixed64: span.start)
        message.add(8, fixed64: max(span.start, span.end))
        span.attributes.forEach { add(9, $0, $1, to: &message) }
        for event in span.events {
            message.add(11) { part in
                part.add(1, fixed64: event.nanosecondsSinceEpoch)
                part.add(2, event.name)
                event.attributes.forEach { add(3, $0, $1, to: &part) }
            }
        }
        message.add(12, number: UInt64(span.droppedEvents))
        for link in span.links {
            message.add(13) { part in
                part.add(1, bytes: link.trace.bytes)
                part.add(2, bytes: link.span.bigEndianBytes)
                part.add(6, fixed32: UInt32(link.flags))
            }
        }
        message.add(14, number: UInt64(span.droppedLinks))
        if let status = span.status {
            message.add(15) { part in
                if let words = status.message { part.add(2, words) }
                part.add(3, number: status.code == .ok ? 1 : 2)
            }
        }
        message.add(16, fixed32: UInt32(span.context.flags))
    }

    private static func number(of kind: SpanKind) -> UInt64 {
        switch kind {
        case .internal: 1
        case .server: 2
        case .client: 3
        case .producer: 4
        case .consumer: 5
        }
    }

    private static func add(
        _ field: Int, _ name: String, _ value: SpanAttribute, to message: inout ProtobufWriter
    ) {
        message.add(field) { pair in
            pair.add(1, name)
            pair.add(2) { add(value, to: &$0) }
        }
    }

    /// An `AnyValue`. Lists are none of ours.
    private static func add(_ value: SpanAttribute, to message: inout ProtobufWriter) {
        switch value {
        case .string(let text): message.add(1, text)
        case .stringConvertible(let text): message.add(1, "\(text)")
        case .bool(let flag): message.add(2, always: flag ? 1 : 0)
        case .int32(let number): message.add(3, always: UInt64(bitPattern: Int64(number)))
        case .int64(let number): message.add(3, always: UInt64(bitPattern: number))
        case .double(let number): message.add(4, fixed64: number.bitPattern)
        default: break
        }
    }
}

/// Writes protobuf, field after field.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    private mutating func append(_ number: UInt64) {
        var rest = number
        while rest > 127 {
            bytes.append(UInt8(rest & 127) | 128)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// - Parameter wire: how what follows is written.
    private mutating func append(_ field: Int, wire: Int) { append(UInt64(field << 3 | wire)) }

    mutating func add(_ field: Int, _ text: String) {
        append(field, wire: 2)
        append(UInt64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    mutating func add(_ field: Int, bytes part: [UInt8]) {
        append(field, wire: 2)
        append(UInt64(part.count))
        bytes.append(contentsOf: part)
    }

    /// A 0 is left away: a reader takes it for one.
    mutating func add(_ field: Int, number: UInt64) {
        if number != 0 { add(field, always: number) }
    }

    /// In a choice a 0 is a value too.
    mutating func add(_ field: Int, always number: UInt64) {
        append(field, wire: 0)
        append(number)
    }

    mutating func add(_ field: Int, fixed64 number: UInt64) {
        append(field, wire: 1)
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func add(_ field: Int, fixed32 number: UInt32) {
        append(field, wire: 5)
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func add(_ field: Int, message write: (inout ProtobufWriter) -> Void) {
        var part = ProtobufWriter()
        write(&part)
        add(field, bytes: part.bytes)
    }
}
