// SPDX-License-Identifier: Apache-2.0

import CMalloc
import Dispatch
public import ServiceLifecycle

/// Gives memory that was freed back to the system, twice a minute. glibc keeps what lies below something that is still in
/// use: after a backlog, or a flood of topics to answer to, that was most of what had been taken.
public struct FreedMemory: Service {
    public init() {}

    public func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while true {
                try await Task.sleep(for: .seconds(30))
                // Takes each arena's lock in turn, for some milliseconds.
                DispatchQueue.global(qos: .utility).async { malloc_trim(0) }
            }
        }
    }
}
