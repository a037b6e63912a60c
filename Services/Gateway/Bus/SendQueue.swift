// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Messaging
import Synchronization

/// Commands on their way from the request handlers to the thread that owns the producer.
final class SendQueue: Sendable {
    struct Item: Sendable {
        var id: String
        var record: ProducerRecord
    }

    private let items = Mutex<[Item]>([])
    private let filled = DispatchSemaphore(value: 0)

    func add(_ item: Item) {
        let wasEmpty = items.withLock { items in
            items.append(item)
            return items.count == 1
        }
        if wasEmpty { filled.signal() }
    }

    /// Everything that is there, after waiting at most `timeout` for the first. Empty also when woken.
    func take(timeout: DispatchTimeInterval) -> [Item] {
        _ = filled.wait(timeout: .now() + timeout)
        return items.withLock { items in
            defer { items = [] }
            return items
        }
    }

    func wake() { filled.signal() }
}
