// SPDX-License-Identifier: Apache-2.0

import Hummingbird
import NIOHTTP1

/// Reads a request's body within limits and takes off its compression.
struct BodyReader: Sendable {
    /// Bytes, before and after decompression.
    let limit: Int

    /// Whether a request says that it has a body.
    static func isExpected(_ request: Request) -> Bool {
        request.headers[.transferEncoding] != nil || (request.headers[.contentLength] ?? "0") != "0"
    }

    /// Refuses a body that says itself that it is too large.
    func check(_ request: Request) throws(APIFailure) {
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > limit { throw .tooLarge }
    }

    /// - Throws: `APIFailure`, or what the connection throws: its HTTP error must reach the server.
    func read(_ request: Request) async throws -> [UInt8] {
        try check(request)
        var bytes: [UInt8] = []
        do {
            for try await buffer in request.body {
                guard bytes.count + buffer.readableBytes <= limit else { throw APIFailure.tooLarge }
                bytes += buffer.readableBytesView
            }
        } catch let error as APIFailure {
            throw error
        } catch let error as HTTPParserError {
            throw error
        } catch {
            throw APIFailure.invalid("The body did not arrive whole.")
        }
        return try decoded(bytes, request.headers[.contentEncoding])
    }

    private func decoded(_ bytes: [UInt8], _ encoding: String?) throws(APIFailure) -> [UInt8] {
        switch encoding?.lowercased() {
        case nil, "", "identity": return bytes
        case "gzip", "x-gzip":
            do {
                return try Gzip.decompress(bytes, limit: limit)
            } catch {
                throw error == .tooLarge ? .tooLarge : .invalid("The body is not gzip, although it says so.")
            }
        default: throw APIFailure(415, "UNSUPPORTED_ENCODING", "Content-Encoding is neither gzip nor identity.")
        }
    }
}
