// SPDX-License-Identifier: Apache-2.0

import CZlib

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
