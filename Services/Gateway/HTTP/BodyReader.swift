// SPDX-License-Identifier: Apache-2.0

import CZlib
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

    /// To be called after ``check(_:)``.
    /// - Throws: `APIFailure`, or what the connection throws: its HTTP error must reach the server.
    func read(_ request: Request) async throws -> [UInt8] {
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
            throw APIFailure.invalid("The body did not arrive completely.")
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
                throw error == .tooLarge
                    ? .tooLarge : .invalid("The body is not gzip, although Content-Encoding says it is.")
            }
        default: throw APIFailure(415, "UNSUPPORTED_ENCODING", "Content-Encoding must be gzip or identity.")
        }
    }
}

/// Reads gzip (RFC 1952): one member, nothing after it.
enum Gzip {
    enum Problem: Error { case malformed, tooLarge }

    private static let chunk = 16 * 1024

    /// - Parameter limit: bytes of the result; a small input that would grow beyond is given up in between.
    static func decompress(_ bytes: [UInt8], limit: Int) throws(Problem) -> [UInt8] {
        var stream = z_stream()
        guard identitybus_inflate_init_gzip(&stream) == Z_OK else { throw .malformed }
        defer { inflateEnd(&stream) }
        var input = bytes
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: chunk)
        let status = input.withUnsafeMutableBufferPointer { input -> Int32 in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(clamping: input.count)
            while true {
                let (status, count) = buffer.withUnsafeMutableBufferPointer { buffer in
                    stream.next_out = buffer.baseAddress
                    stream.avail_out = UInt32(chunk)
                    let status = inflate(&stream, Z_NO_FLUSH)
                    return (status, chunk - Int(stream.avail_out))
                }
                output += buffer.prefix(count)
                if output.count > limit || status != Z_OK { return status }
            }
        }
        guard output.count <= limit else { throw .tooLarge }
        guard status == Z_STREAM_END, stream.avail_in == 0 else { throw .malformed }
        return output
    }
}
