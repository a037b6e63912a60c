// SPDX-License-Identifier: Apache-2.0

import Messaging
import Observability
import Storage
public import WireJSON

/// What `--version` prints of a program: its own version, the commit it was built from, and those of the libraries that it
/// runs with.
public enum ProgramVersion {
    /// The standard library tells no more.
    private static let swift = "\(_SwiftStdlibVersion.current)".split(separator: ".").prefix(2).joined(separator: ".")

    private static let libraries = [
        ("Swift", swift), ("librdkafka", KafkaLibrary.version),
        ("libpq", StorageLibraries.libpq), ("SQLite", StorageLibraries.sqlite),
    ]

    /// One line for people.
    public static func line(_ program: String) -> String {
        let commit = Release.commit == "unknown" ? "commit unknown" : String(Release.commit.prefix(7))
        let build = [commit + (Release.isModified ? " with changes" : ""), Release.day].compactMap { $0 }
        let libraries = libraries.map { ", \($0) \($1)" }.joined()
        return "\(program) \(Release.version) (\(build.joined(separator: ", ")))\(libraries)"
    }

    /// The same for programs.
    public static func json(_ program: String) -> JSONValue {
        var object = JSONObject()
        object["program"] = .string(program)
        object["version"] = .string(Release.version)
        object["commit"] = .string(Release.commit)
        object["date"] = Release.day.map { .string($0) } ?? .null
        object["modified"] = .bool(Release.isModified)
        for (name, version) in libraries { object[name.lowercased()] = .string(version) }
        return .object(object)
    }

    /// What the arguments ask for; `nil` when it is something else.
    public static func answer(to arguments: [String], of program: String) -> String? {
        switch arguments {
        case ["--version"]: line(program)
        case ["--version", "--json"], ["--json", "--version"]:
            String(decoding: json(program).serialized(), as: UTF8.self)
        default: nil
        }
    }
}
