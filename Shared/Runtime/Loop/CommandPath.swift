// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
public import Messaging

/// A command's way through reading and writing, without Kafka, the decider and the store. For `scripts/bench counts`,
/// which counts what a command costs there; the loop does the same with its own parts.
public struct CommandPath<Service: CommandService> {
    private let reader: InboundReader<Service>
    private let writer: MessageWriter
    private let now: Timestamp

    /// - Parameter now: the instant of the batch.
    public init(apps: AppDirectory, keys: DeploymentKeys, topics: Topics, now: Timestamp) {
        self.now = now
        reader = InboundReader(
            authenticator: Authenticator(trust: .signed, apps: apps, keys: keys, topics: topics), topics: topics)
        writer = MessageWriter(service: Service.name, topics: topics, keys: keys).at(now)
    }

    /// A command that was accepted.
    public struct Accepted {
        fileprivate let command: AcceptedCommand<Service.Command>

        /// `nil` when it is rejected whatever the state.
        public var body: Service.Command? { try? command.body.get() }
    }

    /// Reads one record: envelope, credential, scope, data.
    /// - Returns: `nil` when the record is not an acceptable command.
    public func read(_ record: KafkaRecord) -> Accepted? {
        reader.read(record, now: now).accepted.map { Accepted(command: $0) }
    }

    /// Writes and signs the events, the forwards and the reply of one decision, in this order.
    public func write(_ decision: Decision<Service.State.Change>, to accepted: Accepted) throws -> [Record] {
        let command = accepted.command
        var messages: [OutboxRecord] = []
        for event in decision.events {
            messages.append(try writer.event(event, of: command, incarnation: 1, index: messages.count, now: now))
        }
        for forward in decision.forwards { messages.append(try writer.forward(forward, of: command, now: now)) }
        if let reply = try writer.reply(decision.outcome, to: command, index: messages.count, now: now) {
            messages.append(reply)
        }
        return messages.map(\.record)
    }
}
