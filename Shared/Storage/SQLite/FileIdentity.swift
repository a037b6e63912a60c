// SPDX-License-Identifier: Apache-2.0

import Glibc

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
