// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// What a program prints as its result: written at once, also into a pipe, and never lost unnoticed.
public enum StandardOutput {
    /// The number of the system's error that ended it; 0 while there was none.
    private static let failure = Mutex<Int32>(0)

    /// Takes the numbers of the standard streams that the program was started without, so that no file or socket gets one of
    /// them and is written into. Writing to such a stream fails as before. To be called before anything is opened.
    public static func holdStreams() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest number that is free.
            _ = open("/dev/null", O_RDONLY)
        }
    }

    /// Writes a line. After a failure nothing more is written: a result with a hole is worse than one that ends.
    public static func write(_ line: String) {
        failure.withLock { failure in
            guard failure == 0 else { return }
            failure = Self.write(Array("\(line)\n".utf8), to: STDOUT_FILENO)
        }
    }

    /// Why not everything was written. Where only nobody reads any more, as behind `| head`, nothing is wrong.
    public static var problem: String? {
        let number = failure.withLock { $0 }
        if number == 0 || number == EPIPE { return nil }
        return "standard output cannot be written: \(String(cString: strerror(number)).lowercased())"
    }

    /// - Returns: the number of the error that it ended with, or 0.
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&ready, 1, 1000)
            } else if errno != EINTR {
                return errno
            }
        }
        return 0
    }
}
