// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Glibc
package import Logging
import Synchronization

/// Prints a line at once, also when the output is a pipe.
package func say(_ line: String) {
    print(line)
    fflush(nil)
}

/// Writes a line to the error output.
package func complain(_ line: String) { FileHandle.standardError.write(Data("\(line)\n".utf8)) }

extension Logger {
    /// For the clients of short-lived commands: only what a person must know.
    package static var quiet: Logger {
        var logger = Logger(label: "identitybus.cli")
        logger.logLevel = .error
        return logger
    }
}

/// Notices SIGINT and SIGTERM instead of dying of them.
package final class Interruption {
    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    private let flag = Flag()
    private let sources: [any DispatchSourceSignal]

    package init() {
        let flag = flag
        sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { flag.value.store(true, ordering: .releasing) }
            source.activate()
            return source
        }
    }

    package var isRequested: Bool { flag.value.load(ordering: .acquiring) }
}
