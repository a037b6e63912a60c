// SPDX-License-Identifier: Apache-2.0

import Dispatch
package import Testing

/// Runs each test on a thread of its own, where it may block: the clients of this library are confined to one thread
/// and wait there, which must not use up the few threads that all tests share. Task-locals, and with them the name of
/// the failing test, stay as they are.
package struct DedicatedThread: TestTrait, SuiteTrait, TestScoping {
    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(ThreadExecutor(), operation: function)
    }
}

extension Trait where Self == DedicatedThread {
    /// The test blocks.
    package static var dedicatedThread: Self { Self() }
}

private final class ThreadExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "messaging-tests")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
