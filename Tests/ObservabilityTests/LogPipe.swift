// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

@testable import Observability

/// A pipe whose writing end is given to a `LineWriter`. Closes both ends when released.
final class LogPipe: Sendable {
    let reader: Int32
    let writer: Int32

    init(nonBlocking: Bool = false) {
        var ends: [Int32] = [0, 0]
        precondition(pipe(&ends) == 0)
        reader = ends[0]
        writer = ends[1]
        if nonBlocking { _ = fcntl(writer, F_SETFL, O_NONBLOCK) }
    }

    deinit {
        close(reader)
        close(writer)
    }

    /// What can be read until so many lines have come, and then nothing for a while. They are written by a thread, which may
    /// be long in coming on a busy machine.
    func drain(lines: Int = 1) -> [UInt8] {
        var content: [UInt8] = []
        while true {
            var request = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
            let areThere = content.count { $0 == 0x0A } >= lines
            guard poll(&request, 1, areThere ? 100 : 60_000) > 0 else { return content }
            let more = readNow()
            if more.isEmpty { return content }
            content += more
        }
    }

    /// What can be read right now.
    func readNow() -> [UInt8] {
        _ = fcntl(reader, F_SETFL, O_NONBLOCK)
        var content: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(reader, &chunk, chunk.count)
            guard count > 0 else { return content }
            content += chunk[..<count]
        }
    }

    func lines() -> [String] {
        String(decoding: drain(), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    func objects() throws -> [[String: Any]] {
        try lines().map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            return object as? [String: Any] ?? [:]
        }
    }
}
