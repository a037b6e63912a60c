// SPDX-License-Identifier: Apache-2.0

import Contracts
import HTTPTypes
import Observability
import WireJSON

/// A request, read to its end. Header names are case-insensitive.
struct APIRequest: Sendable {
    var method: String
    /// As it was sent: still percent-encoded, without the query.
    var path: String
    var query: String?
    var headers: HTTPFields
    /// After decompression. Empty until it is read.
    var body: [UInt8] = []
    var client = Client.unknown
    /// As it names where it was sent.
    var host: String?

    func header(_ name: String) -> String? {
        HTTPField.Name(name).flatMap { headers[$0] }
    }
}

/// A request for an endpoint that sends a command.
struct Call: Sendable {
    var request: APIRequest
    let route: Route
    let command: Endpoint.Command

    var callers: Endpoint.Callers { route.endpoint.callers }
    var dialect: Dialect { route.endpoint.dialect }
    /// Whether it only tells what is so.
    var isRead: Bool { route.endpoint.method == "GET" }
}

struct APIResponse: Sendable {
    var status: Int
    var headers: HTTPFields
    var body: [UInt8]

    init(status: Int, headers: HTTPFields = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    static func json(
        _ status: Int, _ value: JSONValue, type: String = "application/json; charset=utf-8"
    ) -> APIResponse {
        APIResponse(status: status, headers: [.contentType: type], body: value.serialized())
    }

    /// Begun, and not at its end.
    static func accepted(_ progress: String?) -> APIResponse {
        var response = APIResponse(status: 202)
        response.goesOn(progress)
        return response
    }

    /// Says of a 202 where to ask how it goes on, and when.
    /// - Parameter progress: the path of what tells; `nil` when nothing does.
    mutating func goesOn(_ progress: String?) {
        guard let progress else { return }
        headers[.location] = progress
        headers[.retryAfter] = "1"
    }

    mutating func set(_ name: String, _ value: String) {
        if let name = HTTPField.Name(name) { headers[name] = value }
    }
}

/// `Prefer: dry-run` (RFC 7240): say what the request would come to, and change nothing.
enum Preference {
    private static let dryRun = "dry-run"

    static func isDryRun(_ request: APIRequest) -> Bool {
        guard let header = request.header("Prefer") else { return false }
        return header.split(separator: ",").contains { preference in
            let name = preference.prefix { $0 != ";" && $0 != "=" }
            return name.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }.lowercased() == dryRun
        }
    }

    static func confirm(in response: inout APIResponse, to request: APIRequest) {
        if isDryRun(request) { response.set("Preference-Applied", dryRun) }
    }
}

/// The W3C trace context of a request: the caller's, or a new one.
struct TraceContext: Sendable, Equatable {
    /// 32 lower-case hex characters.
    var id: String
    /// The `traceparent` that commands carry.
    var parent: String
    var state: String?

    /// - Parameters: the request's `traceparent` and `tracestate`; what is not well formed is not taken over.
    init(parent: String?, state: String?) {
        guard let parent, SpanContext(traceParent: parent) != nil else {
            self = TraceContext(.random(isSampled: true), state: nil)
            return
        }
        id = String(parent.dropFirst(3).prefix(32))
        self.parent = parent
        self.state = state.flatMap { Self.isState($0) ? $0 : nil }
    }

    /// What comes of a span.
    /// - Parameter state: of the caller; of another trace than this one it is not taken over.
    init(_ span: SpanContext, state: String?) {
        id = span.traceText
        parent = span.traceParent
        self.state = state.flatMap { Self.isState($0) ? $0 : nil }
    }

    /// At most what an envelope takes, and printable.
    private static func isState(_ text: String) -> Bool {
        (1...512).contains(text.utf8.count) && text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
    }
}
