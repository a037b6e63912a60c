// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The release that this program belongs to: a semantic version, the same for all executables. `--version` prints it, the
/// metric `identity_build_info` carries it, and the inbox keeps it beside each decision.
public enum Release {
    /// The commit that it was built from, as the image or whoever built it says; `unknown` where nobody does.
    public static let commit = commit(environment: ProcessInfo.processInfo.environment)

    static func commit(environment: [String: String]) -> String {
        let text = environment["IDENTITYBUS_COMMIT"] ?? ""
        let isCommit = (7...64).contains(text.utf8.count) && text.utf8.allSatisfy(UInt8.hexadecimal.contains)
        return isCommit ? text : "unknown"
    }
}

extension UInt8 {
    fileprivate static let hexadecimal = Set("0123456789abcdef".utf8)
}
