// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import NIOCore
import Observability

/// What a port of the gateway serves at `/openapi.json`: the committed document about it without white space, and the
/// commit that serves it.
struct OpenAPIDocument: Sendable {
    let buffer: ByteBuffer
    private let tag: String

    private static let api = OpenAPIDocument(text)
    private static let admin = OpenAPIDocument(adminText)

    static func of(_ door: Door) -> OpenAPIDocument {
        switch door {
        case .api: api
        case .admin: admin
        }
    }

    private init(_ text: String) {
        let version = #""version":"\#(Release.version)""#
        let served = text.replacing(
            version, with: version + #","x-commit":"\#(Release.commit)""#, maxReplacements: 1)
        buffer = ByteBuffer(string: served)
        tag = EntityTag.strong(Array(served.utf8))
    }

    /// Without the body, which is ``buffer``.
    /// - Parameter tags: the request's `If-None-Match`.
    func response(knownAs tags: String?) -> APIResponse {
        APIResponse(
            status: EntityTag.isKnown(tag, as: tags) ? 304 : 200,
            headers: [.contentType: "application/json", .eTag: tag, .cacheControl: "no-cache"])
    }
}
