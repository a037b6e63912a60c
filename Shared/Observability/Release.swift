// SPDX-License-Identifier: Apache-2.0

internal import CBuild
internal import Foundation

/// The release that this program belongs to: a semantic version, the same for all executables. `--version` prints it, the
/// metric `identity_build_info` carries it, and the inbox keeps it beside each decision.
public enum Release {
    /// The commit that it was built from, as the build recorded it, else as `IDENTITYBUS_COMMIT` says; `unknown` where
    /// neither does.
    public static let commit =
        checked(String(cString: identitybus_commit()))
        ?? commit(environment: ProcessInfo.processInfo.environment)

    /// The day of that commit, such as `2030-01-31`; `nil` where it is not known.
    public static var day: String? {
        let day = String(cString: identitybus_commit_day())
        return day.isEmpty ? nil : day
    }

    /// Whether the sources differed from the commit.
    public static var isModified: Bool { identitybus_is_modified() != 0 }

    static func commit(environment: [String: String]) -> String {
        checked(environment["IDENTITYBUS_COMMIT"] ?? "") ?? "unknown"
    }

    private static func checked(_ text: String) -> String? {
        (7...64).contains(text.utf8.count) && text.utf8.allSatisfy(UInt8.hexadecimal.contains) ? text : nil
    }
}

extension UInt8 {
    fileprivate static let hexadecimal = Set("0123456789abcdef".utf8)
}
