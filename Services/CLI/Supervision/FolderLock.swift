// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Glibc

/// Keeps a folder to one `identitybus up`, for as long as the process lives: a second one would take away the first one's
/// broker and files.
package final class FolderLock {
    private let descriptor: Int32

    /// Makes the folder where it is missing.
    /// - Throws: `Problem` when somebody else has it, or it cannot be made.
    package init(folder: String) throws(Problem) {
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        } catch {
            var problem = Problem(error)
            problem.what = "\(folder) cannot be made: \(problem.cause)."
            problem.advice = [Self.advice]
            throw problem
        }
        let path = "\(folder)/lock"
        // Children must not keep it when they outlive this process.
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Problem(.noRight, "\(path) cannot be written: \(String(cString: strerror(errno))).", Self.advice)
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let holder =
                (try? String(contentsOfFile: path, encoding: .utf8))?
                .trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
            throw Problem(
                .usage, "identitybus up is running already in \(folder)\(holder.isEmpty ? "" : " (\(holder))").",
                "Stop it, or choose another --data-dir.")
        }
        let text = Array("pid \(getpid()), since \(Timestamp.now.rfc3339)\n".utf8)
        ftruncate(descriptor, 0)
        _ = pwrite(descriptor, text, text.count, 0)
    }

    /// A child that is just being made has the descriptor until it runs its program: a close alone would leave it the lock.
    deinit {
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    private static let advice = "--data-dir names a folder that `identitybus up` may write."
}
