// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// A file that a setting names.
public enum TextFile {
    /// Why it cannot be read, in words for people: `no such file or directory`, `permission denied`, `is a directory`.
    public struct Problem: Error, Sendable, CustomStringConvertible {
        public let description: String
        /// Where the file stops being text, counted from 1; the column in characters. `nil` where nothing of it can be read.
        public private(set) var place: (line: Int, column: Int)?

        fileprivate init(description: String) { self.description = description }

        fileprivate init(notUTF8 data: Data) {
            var (line, column) = (1, 1)
            var bytes = data.makeIterator()
            var parser = Unicode.UTF8.ForwardParser()
            while case .valid(let scalar) = parser.parseScalar(from: &bytes) {
                (line, column) = scalar.first == UInt8(ascii: "\n") ? (line + 1, 1) : (line, column + 1)
            }
            self.init(description: "it is not UTF-8 from line \(line), column \(column) on")
            place = (line, column)
        }
    }

    /// - Throws: ``Problem``, without the path.
    public static func read(_ path: String) throws(Problem) -> String {
        guard let data = FileManager.default.contents(atPath: path) else { throw Problem(description: reason(path)) }
        guard let text = String(validating: data, as: UTF8.self) else { throw Problem(notUTF8: data) }
        return text
    }

    /// Reads a file that holds a secret. A path that names nothing is not repeated: it may be the secret itself, put where the
    /// path of its file should be.
    /// - Throws: ``Problem``, with what may be told of the path, such as `/run/key cannot be read: permission denied`.
    public static func secret(_ path: String) throws(Problem) -> String {
        do {
            return try read(path)
        } catch {
            var status = stat()
            if lstat(path, &status) == 0 { throw Problem(description: "\(path) cannot be read: \(error)") }
            throw Problem(
                description:
                    "names a file that is not there, in \(folder(above: path)): \(error). The path is not shown: it may be "
                    + "the secret itself. Give the path of a file that holds the secret")
        }
    }

    /// Why the file of a key, a certificate or a keytab cannot be read, in words that may be shown: what stands in the place of
    /// the path may be the key itself. What the file holds is for others to judge.
    public static func problem(of path: String) -> String? {
        if path.contains("-----BEGIN ") {
            return "is the text of a PEM file and not its path; write it to a file, and set its path"
        }
        do throws(Problem) {
            _ = try read(path)
            return nil
        } catch {
            return error.place == nil ? "\(path) cannot be read: \(error)" : nil
        }
    }

    /// The secret that a variable has, or the file that its `_FILE` variant names: one of the two. Empty counts as not set.
    /// - Throws: ``VariableProblem``.
    public static func secret(
        of variable: String, in environment: [String: String]
    ) throws(VariableProblem) -> String? {
        let given = { (name: String) in environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        let file = "\(variable)_FILE"
        guard let path = given(file) else { return given(variable) }
        guard given(variable) == nil else {
            throw VariableProblem(variable: variable, words: "is set together with \(file); set one of them")
        }
        do throws(Problem) {
            return try secret(path).withoutFinalNewlines
        } catch {
            throw VariableProblem(variable: file, words: error.description)
        }
    }

    /// Which variable is wrong, and why.
    public struct VariableProblem: Error, Sendable {
        public let variable: String
        public let words: String
    }

    /// The nearest folder that there is.
    private static func folder(above path: String) -> String {
        var folder = path[...]
        var status = stat()
        while let slash = folder.lastIndex(of: "/") {
            folder = folder[..<slash]
            if folder.isEmpty { return "/" }
            if stat(String(folder), &status) == 0, status.st_mode & S_IFMT == S_IFDIR { return String(folder) }
        }
        return "the working folder"
    }

    /// Foundation does not tell.
    private static func reason(_ path: String) -> String {
        var status = stat()
        if stat(path, &status) == 0, ![S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT) {
            return "it is a pipe, a device or a socket, and no file"
        }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return words(errno) }
        defer { close(descriptor) }
        var byte: UInt8 = 0
        // What can be read by now was written meanwhile.
        return Glibc.read(descriptor, &byte, 1) < 0 ? words(errno) : "it was not there"
    }

    private static func words(_ number: Int32) -> String { String(cString: strerror(number)).lowercased() }
}
