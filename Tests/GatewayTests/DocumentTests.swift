// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import WireJSON

@testable import Gateway

@Suite struct DocumentTests {
    private func parsed(_ bytes: [UInt8]) throws -> JSONValue {
        try JSONValue(parsing: bytes, limits: JSONLimits(maxDepth: 64, maxBytes: 1_000_000))
    }

    /// scripts/generate writes the one from the other.
    @Test func theServedDocumentIsTheCommittedOne() throws {
        let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let committed = try Data(contentsOf: repository.appending(path: "docs/openapi.json"))
        #expect(try parsed(Array(OpenAPIDocument.text.utf8)) == parsed(Array(committed)))
    }

    @Test func everyPathOfItIsAnEndpoint() throws {
        let document = try parsed(Array(OpenAPIDocument.text.utf8))
        let paths = try #require(document.objectValue?["paths"]?.objectValue)
        #expect(paths.count == 21)
        for path in paths {
            let sample = path.name.replacing("{mpid}", with: "7").replacing("{install_id}", with: "i")
                .replacing("{api_key}", with: "k").replacing("{user_id}", with: "u")
            let methods = (path.value.objectValue ?? [:]).map { $0.name.uppercased() }
            #expect(Route.at(sample).map(\.method) == methods, "\(path.name)")
        }
    }
}
