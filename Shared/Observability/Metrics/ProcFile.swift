// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Reads whole files of the proc file system, whose sizes are not known beforehand.
enum ProcFile {
    /// The content of the file; nil when it cannot be opened or read. Bytes that are not UTF-8 are replaced.
    static func read(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count > 0 {
                content += chunk[..<count]
            } else if count == 0 {
                return String(decoding: content, as: UTF8.self)
            } else if errno != EINTR {
                return nil
            }
        }
    }
}
