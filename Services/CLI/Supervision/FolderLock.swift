// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Glibc

/// Keeps a folder to one `identitybus up`, for as long as the process lives: a second one would take away the first one's
/// broker and files.
package final class FolderLock {
    /// Why the folder is not ours.
    package struct Failure: Error, CustomStringConvertible {
        package var description: String
    }

    private let descriptor: Int32

    /// Makes the folder where it is missing.
    /// - Throws: `Failure` when somebody else has it, or it cannot be made.
    package init(folder: String) throws(Failure) {
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        } catch {
            // Foundation's words do not say why.
            throw Failure(
                description: "\(folder) cannot be made: \(Self.words(mkdir(folder, 0o700))). Choose another --data-dir."
            )
        }
        let path = "\(folder)/lock"
        // Children must not keep it when they outlive this process.
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure(
                description:
                    "\(path) cannot be written: \(String(cString: strerror(errno))). Choose another --data-dir.")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let holder =
                (try? String(contentsOfFile: path, encoding: .utf8))?
                .trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
            throw Failure(
                description: "identitybus up is running already in \(folder)\(holder.isEmpty ? "" : " (\(holder))"). "
                    + "Stop it, or choose another --data-dir.")
        }
        let text = Array("pid \(getpid()), since \(Timestamp.now.rfc3339)\n".utf8)
        ftruncate(descriptor, 0)
        _ = pwrite(descriptor, text, text.count, 0)
    }

    deinit { close(descriptor) }

    private static func words(_: Int32) -> String { String(cString: strerror(errno)) }
}
