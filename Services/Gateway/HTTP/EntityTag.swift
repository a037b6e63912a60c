// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import HTTPTypes
import WireJSON

/// The tag of what was read (RFC 9110, 8.8.3): who has it already is not sent it again.
enum EntityTag {
    /// New with every answer, and not what a reader compares.
    private static let passing = ["token", "installToken"]

    /// Of a body that is always the same for the same thing.
    static func strong(_ body: [UInt8]) -> String { "\"\(SHA256.hash(data: body).prefix(8).hex)\"" }

    /// Tags an answer, and makes it 304 when the request names the tag. The tag is a weak one: it does not cover tokens, so
    /// a device that wants new ones does not name it.
    static func apply(to response: inout APIResponse, request: APIRequest) {
        guard response.status == 200, var object = (try? JSONValue(parsing: response.body))?.objectValue else { return }
        for name in passing { object[name] = nil }
        let tag = "W/" + strong(JSONValue.object(object).canonicalBytes())
        response.headers[.eTag] = tag
        guard isKnown(tag, as: request.headers[.ifNoneMatch]) else { return }
        response.status = 304
        response.body = []
        response.headers[.contentType] = nil
    }

    /// - Parameter tags: the request's `If-None-Match`, which compares weakly.
    static func isKnown(_ tag: String, as tags: String?) -> Bool {
        let known = (tags ?? "").split(separator: ",").map { opaque($0.filter { $0 != " " && $0 != "\t" }) }
        return known.contains(opaque(tag)) || known == ["*"]
    }

    private static func opaque(_ tag: some StringProtocol) -> String {
        String(tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...])
    }
}
