// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// The linking vendor's words (F1, F2, F4).
enum LinkingCalls {
    static let memberNames = [("data.externalId", "external_id"), ("data.installId", "install_id")]

    @Sendable static func link(_ content: RequestContent) throws(APIFailure) -> LinkRequest {
        LinkRequest(installId: InstallID(content.id), externalId: try externalID(content))
    }

    @Sendable static func requestCode(_ content: RequestContent) throws(APIFailure) -> RequestAuthCode {
        RequestAuthCode(externalId: try externalID(content))
    }

    private static func externalID(_ content: RequestContent) throws(APIFailure) -> ExternalID {
        guard let value = content.body["external_id"] else { throw .invalid("external_id is missing.") }
        guard case .string(let text) = value else { throw .invalid("external_id must be a string.") }
        guard !text.isEmpty else { throw .invalid("external_id is empty.") }
        return ExternalID(text)
    }

    @Sendable static func linked(_ outcome: Endpoint.Outcome) -> APIResponse {
        .json(200, ["id": outcome.result["userId"] ?? .null])
    }

    @Sendable static func code(_ outcome: Endpoint.Outcome) -> APIResponse {
        .json(
            200,
            [
                "authentication_code": outcome.result["authenticationCode"] ?? .null,
                "expires_at": outcome.result["expiresAt"] ?? .null,
            ])
    }

    /// The certificate; 202 while it is not whole (L61).
    @Sendable static func erased(_ outcome: Endpoint.Outcome) -> APIResponse {
        if outcome.result.members.isEmpty { return APIResponse(status: 202) }
        return .json(outcome.result["completedAt"] == nil ? 202 : 200, .object(outcome.result))
    }

    /// Where the certificate is.
    @Sendable static func erasure(_ content: RequestContent) -> String? { "/users/\(content.id)/erasure" }

    static func failure(_ failure: APIFailure, _ ref: CommandID) -> APIResponse {
        .json(
            failure.status,
            ["message": .string(failure.message), "errorCode": .string(failure.code), "ref": .string(ref.text)])
    }
}
