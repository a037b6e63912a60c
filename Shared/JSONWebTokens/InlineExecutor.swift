// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Runs asynchronous work to its end on the calling thread.
///
/// jwt-kit's interface is asynchronous although verifying a signature only computes, and a decider is synchronous: it
/// runs on the loop's own thread, where nothing may be awaited. The work's jobs are queued here and run by the thread
/// that waits for them, so no other thread takes part: nothing blocks or starves Swift's cooperative threads, and a
/// decision needs nothing but its arguments.
final class InlineExecutor: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])
    private let arrived = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        arrived.signal()
    }

    /// - Returns: what `work` returned; when this returns, all of its jobs have run.
    static func run<Value: Sendable>(_ work: sending @escaping () async -> Value) -> Value {
        let executor = InlineExecutor()
        let result = Box<Value>()
        Task(executorPreference: executor) { result.put(await work()) }
        while true {
            executor.arrived.wait()
            let job = executor.jobs.withLock { $0.removeFirst() }
            job.runSynchronously(on: executor.asUnownedTaskExecutor())
            if let value = result.take() { return value }
        }
    }

    private final class Box<Value: Sendable>: Sendable {
        private let value = Mutex<Value?>(nil)
        func put(_ new: Value) { value.withLock { $0 = new } }
        func take() -> Value? { value.withLock { $0 } }
    }
}
