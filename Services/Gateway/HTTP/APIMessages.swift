// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
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

    func header(_ name: String) -> String? {
        HTTPField.Name(name).flatMap { headers[$0] }
    }
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

    mutating func set(_ name: String, _ value: String) {
        if let name = HTTPField.Name(name) { headers[name] = value }
    }
}
