// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import NIOCore

/// What the gateway serves at `/openapi.json`: docs/openapi.json without white space.
enum OpenAPIDocument {
    static let buffer = ByteBuffer(string: text)

    private static let tag = EntityTag.strong(Array(text.utf8))

    /// Without the body, which is ``buffer``.
    /// - Parameter tags: the request's `If-None-Match`.
    static func response(knownAs tags: String?) -> APIResponse {
        return APIResponse(
            status: EntityTag.isKnown(tag, as: tags) ? 304 : 200,
            headers: [.contentType: "application/json", .eTag: tag, .cacheControl: "no-cache"])
    }
}
