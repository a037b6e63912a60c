// SPDX-License-Identifier: Apache-2.0

import Contracts
import HTTPTypes
import Runtime

/// The console's pages: the files of `Services/Gateway/Console`, which scripts/generate has compiled in, each under a name that
/// changes with its content (docs/console.md). A gateway without a console has none.
struct ConsoleFiles: Sendable {
    struct File: Sendable {
        /// Behind `/console/`; empty for the page itself.
        let name: String
        let type: String
        let text: String
    }

    private let files: [String: File]

    /// - Returns: `nil` for no console.
    init?(_ mode: ConsoleMode) {
        guard mode != .no else { return nil }
        files = Dictionary(
            Self.compiled.map { file -> (String, File) in
                let text = file.text.replacing(#"data-mode="plain""#, with: #"data-mode="\#(mode.rawValue)""#)
                return (file.name, File(name: file.name, type: file.type, text: mode == .demo ? text : file.text))
            }, uniquingKeysWith: { first, _ in first })
    }

    /// Of the page: scripts, style and data come from here and nowhere else, and no text becomes markup.
    static let policy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'",
        "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ].joined(separator: "; ")

    /// - Returns: `nil` when there is no such file.
    func response(_ name: String) -> APIResponse? {
        guard let file = files[name] else { return nil }
        var response = APIResponse(
            status: 200, headers: [.contentType: file.type, .cacheControl: "no-store"], body: Array(file.text.utf8))
        response.set("Content-Security-Policy", Self.policy)
        response.set("X-Content-Type-Options", "nosniff")
        response.set("Referrer-Policy", "no-referrer")
        response.set("Cross-Origin-Opener-Policy", "same-origin")
        return response
    }
}
