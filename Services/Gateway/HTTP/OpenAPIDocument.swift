// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import NIOCore
import Observability

/// What the gateway serves at `/openapi.json`: docs/openapi.json without white space, and the commit that serves it.
enum OpenAPIDocument {
    private static let served: String = {
        let version = #""version":"\#(Release.version)""#
        return text.replacing(version, with: version + #","x-commit":"\#(Release.commit)""#, maxReplacements: 1)
    }()

    static let buffer = ByteBuffer(string: served)

    private static let tag = EntityTag.strong(Array(served.utf8))

    /// Without the body, which is ``buffer``.
    /// - Parameter tags: the request's `If-None-Match`.
    static func response(knownAs tags: String?) -> APIResponse {
        return APIResponse(
            status: EntityTag.isKnown(tag, as: tags) ? 304 : 200,
            headers: [.contentType: "application/json", .eTag: tag, .cacheControl: "no-cache"])
    }
}
