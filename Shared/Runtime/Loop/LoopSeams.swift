// SPDX-License-Identifier: Apache-2.0

package import Contracts
import Logging
package import Messaging

/// What the loop meets of the world, beside its store (``SQLDatabase``) and what the ``BrokerWatch`` is told
/// (docs/loop.md, "Seams"). A program has the real world; the simulation has one that it makes up.
package struct LoopSeams {
    /// Joins the group that reads a topic.
    package var makeConsumer: (Consumers.Source, any RebalanceHandler) throws -> any RecordConsumer
    /// Blocks until one of the consumers may have something, at most so long.
    package var waitForRecords: (Duration) -> Void
    package var makeProducer: (KafkaProducer.Batching) throws -> any RecordProducer
    package var clock: LoopClock
    /// Whether others are told now and then how this replica is doing.
    package var tellsStatus: Bool

    package init(
        makeConsumer: @escaping (Consumers.Source, any RebalanceHandler) throws -> any RecordConsumer,
        waitForRecords: @escaping (Duration) -> Void,
        makeProducer: @escaping (KafkaProducer.Batching) throws -> any RecordProducer, clock: LoopClock,
        tellsStatus: Bool = false
    ) {
        self.makeConsumer = makeConsumer
        self.waitForRecords = waitForRecords
        self.makeProducer = makeProducer
        self.clock = clock
        self.tellsStatus = tellsStatus
    }

    /// Kafka, and the system's clock.
    static func real(_ kafka: KafkaConfiguration, _ signals: LoopSignals, _ logger: Logger) throws -> LoopSeams {
        let wakeUp = try WakeUp()
        return LoopSeams(
            makeConsumer: { source, handler in
                try KafkaConsumer(
                    configuration: kafka, groupID: source.group, topics: [source.topic], handler: handler,
                    wakeUp: wakeUp, logger: logger)
            },
            waitForRecords: { timeout in
                wakeUp.wait(timeout: timeout)
                wakeUp.clear()
            },
            makeProducer: {
                try KafkaProducer(configuration: kafka, logger: logger, maximumBlock: .zero, batching: $0)
            },
            clock: .real(signals), tellsStatus: true)
    }
}

/// Time and chance, as the loop meets them.
package struct LoopClock {
    /// For pauses.
    package var now: () -> ContinuousClock.Instant
    /// For decisions.
    package var time: () -> Timestamp
    /// Blocks the loop's thread, at most until it is asked to stop.
    package var sleep: (Duration) -> Void
    /// Blocks it also then, for some milliseconds.
    package var pause: (Duration) -> Void
    /// Spreads pauses.
    package var random: any RandomNumberGenerator

    package init(
        now: @escaping () -> ContinuousClock.Instant, time: @escaping () -> Timestamp,
        sleep: @escaping (Duration) -> Void, pause: @escaping (Duration) -> Void,
        random: any RandomNumberGenerator
    ) {
        self.now = now
        self.time = time
        self.sleep = sleep
        self.pause = pause
        self.random = random
    }

    static func real(_ signals: LoopSignals) -> LoopClock {
        LoopClock(
            now: { .now }, time: { .now }, sleep: { signals.sleep($0) },
            pause: LoopSignals.pause, random: SystemRandomNumberGenerator())
    }
}

extension ServiceLoop {
    /// Blocks for some milliseconds, nobody knows how many beforehand.
    func sleep(milliseconds: ClosedRange<Int>) {
        let pause = Int.random(in: milliseconds, using: &clock.random)
        clock.sleep(.milliseconds(pause))
    }
}
