// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import WireJSON

/// What the gateway answers itself.
extension API {
    /// - Parameter query: of the request.
    func read(
        _ reading: Endpoint.Reading, _ caller: Caller, _ query: String?
    ) async throws(APIFailure) -> APIResponse {
        switch reading {
        case .key:
            _ = try Query(query, [])
            return .json(200, Self.key(caller))
        case .status:
            let query = try Query(query, [.after])
            return .json(200, try await console().status(after: query[.after]))
        case .deadLetters:
            _ = try Query(query, [])
            return .json(
                200,
                try await console().deadLetters(
                    of: caller.app.id, nobodys: caller.principal.scopes.contains(.admin)))
        }
    }

    /// Who signs in is shown what they may do.
    private static func key(_ caller: Caller) -> JSONValue {
        [
            "key": .string(caller.authID), "app": .string(caller.app.id.text),
            "scopes": .array(caller.principal.scopes.map(\.rawValue).sorted().map { .string($0) }),
            // Whoever takes people apart there needs one scope more (S126).
            "enforces": .bool(caller.app.verification.mode == .enforce),
            "isMasked": .bool(caller.isMasked),
        ]
    }

    /// An answer as the caller may see it.
    static func masked(_ answer: APIResponse, for caller: Caller) -> APIResponse {
        guard caller.isMasked, !answer.body.isEmpty,
            let body = try? JSONValue(parsing: answer.body, limits: JSONLimits(maxBytes: answer.body.count))
        else { return answer }
        var masked = answer
        masked.body = APIResponse.json(answer.status, Mask.masked(body)).body
        return masked
    }

    private func console() throws(APIFailure) -> ConsoleReader {
        guard let reader else {
            throw APIFailure(404, "NO_SUCH_ENDPOINT", "This gateway has no console: CONSOLE is not set.")
        }
        return reader
    }
}
