// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// A file that a setting names.
public enum TextFile {
    /// Why it cannot be read, in words for people: `no such file or directory`, `permission denied`, `is a directory`.
    public struct Problem: Error, Sendable, CustomStringConvertible {
        public let description: String
    }

    /// - Throws: ``Problem``, without the path.
    public static func read(_ path: String) throws(Problem) -> String {
        guard let data = FileManager.default.contents(atPath: path) else { throw Problem(description: reason(path)) }
        guard let text = String(validating: data, as: UTF8.self) else { throw Problem(description: "it is not UTF-8") }
        return text
    }

    /// Foundation does not tell.
    private static func reason(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return words(errno) }
        defer { close(descriptor) }
        var byte: UInt8 = 0
        // What can be read by now was written meanwhile.
        return Glibc.read(descriptor, &byte, 1) < 0 ? words(errno) : "it was not there"
    }

    private static func words(_ number: Int32) -> String { String(cString: strerror(number)).lowercased() }
}
