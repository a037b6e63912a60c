// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import HTTPTypes
import NIOCore

/// What the gateway serves at `/openapi.json`: docs/openapi.json without white space.
enum OpenAPIDocument {
    static let buffer = ByteBuffer(string: text)

    private static let tag = "\"\(SHA256.hash(data: Array(text.utf8)).prefix(8).hex)\""

    /// Without the body, which is ``buffer``.
    /// - Parameter tags: the request's `If-None-Match`.
    static func response(knownAs tags: String?) -> APIResponse {
        let known = (tags ?? "").split(separator: ",").map { $0.filter { $0 != " " }.replacing("W/", with: "") }
        let isKnown = known.contains(tag) || known == ["*"]
        return APIResponse(
            status: isKnown ? 304 : 200,
            headers: [.contentType: "application/json", .eTag: tag, .cacheControl: "no-cache"])
    }
}
