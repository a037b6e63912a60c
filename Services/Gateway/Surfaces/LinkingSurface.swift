// SPDX-License-Identifier: Apache-2.0

import WireJSON

/// The linking vendor's two server-to-server calls (facts/linking-and-verification.md A2).
enum LinkingSurface {
    static func externalID(_ body: JSONObject) throws(APIFailure) -> JSONValue {
        guard case .string(let text)? = body["external_id"] else {
            throw .invalid(
                body["external_id"] == nil ? "external_id is missing." : "external_id is not a string.")
        }
        guard !text.isEmpty else { throw .invalid("external_id is empty.") }
        return .string(text)
    }

    static func authenticationCode(_ result: JSONObject) -> JSONValue {
        ["authentication_code": result["authenticationCode"] ?? .null, "expires_at": result["expiresAt"] ?? .null]
    }
}
