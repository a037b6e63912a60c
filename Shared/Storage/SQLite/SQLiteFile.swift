// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An exclusive advisory lock on a file, held as long as this object lives.
///
/// The kernel gives it back when the process ends, however it ends. Child processes do not inherit it.
final class FileLock {
    private let descriptor: CInt

    /// - Throws: `unavailable` when another open lock holds the file, in this process or another one.
    init(path: String, protecting subject: String) throws(StorageError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw .unavailable("cannot open the lock file \(path): \(Self.reason(errno))")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            let holder = Self.holder(descriptor)
            Glibc.close(descriptor)
            guard code == EWOULDBLOCK else {
                throw .unavailable("cannot lock \(path): \(Self.reason(code))")
            }
            throw .unavailable(
                "\(subject)\(StorageError.inUse)\(holder), which holds the lock file \(path): a SQLite file serves one "
                    + "replica; stop the other one, or use PostgreSQL to run several")
        }
        self.descriptor = descriptor
        writeHolder()
    }

    /// A child that is just being made has this descriptor until it runs its program: the lock is given back in its name
    /// too, since a close alone would leave it there for those milliseconds.
    deinit {
        flock(descriptor, LOCK_UN)
        Glibc.close(descriptor)
    }

    /// Leaves this process's id in the file, only so that the next one can say who is in the way.
    private func writeHolder() {
        let line = Array("\(getpid())\n".utf8)
        guard ftruncate(descriptor, 0) == 0 else { return }
        _ = line.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    }

    private static func holder(_ descriptor: CInt) -> String {
        var bytes = [UInt8](repeating: 0, count: 20)
        let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        let digits = bytes.prefix(max(count, 0)).prefix { (48...57).contains($0) }
        return digits.isEmpty ? "another process" : "process \(String(decoding: digits, as: UTF8.self))"
    }

    private static func reason(_ code: CInt) -> String {
        String(cString: strerror(code))
    }
}

extension StorageError {
    fileprivate static let inUse = " is in use by "

    /// Whether somebody else holds the lock of a SQLite file.
    package var isInUse: Bool { sqlState == nil && message.contains(Self.inUse) }
}

/// Which file it is that a path leads to. As long as a file is open, no other one has its identity.
struct FileIdentity: Equatable {
    private let device: dev_t
    private let inode: ino_t

    /// Nil when the path leads to no file, or to none that can be looked at.
    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        device = status.st_dev
        inode = status.st_ino
    }
}
