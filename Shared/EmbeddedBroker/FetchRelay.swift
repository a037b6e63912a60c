// SPDX-License-Identifier: Apache-2.0

internal import Contracts
internal import Dispatch
internal import Foundation
import Glibc
internal import Messaging
import Synchronization

/// Stands between clients and librdkafka's test brokers, because these answer a fetch that finds nothing only when its wait
/// is over, whatever is produced meanwhile. Here it is answered as soon as one of its topics has something new, as Kafka
/// does. So clients can wait for long, and neither pay for asking nor for waiting. What was appended last is answered without
/// the broker (``LogTails``), and who comes back to its group under its own name (``StaticMembers``).
///
/// Each connection has a thread, which takes one request at a time, as a broker does. May be used from any thread.
final class FetchRelay: Sendable {
    /// As many as brokers, in their order.
    let ports: [UInt16]

    private static let host = "127.0.0.1"
    /// As Kafka's `socket.request.max.bytes`.
    private static let maxFrame = 104_857_600
    private static let authorizationFailed: Int16 = 29
    private static let invalidAcknowledgements: Int16 = 21
    private static let unsupportedFormat: Int16 = 43

    private struct Connection {
        var broker: Int
        var sockets: [Socket]
    }

    private struct State {
        var isClosed = false
        var connections: [Int: Connection] = [:]
        var next = 0
        var denied: Set<Right> = []
        var isFaulty = false
    }

    /// What somebody may do with a topic.
    struct Right: Hashable {
        var api: KafkaRequest.API
        var topic: String
    }

    private let brokers: [UInt16]
    private let redirections: [UInt16: UInt16]
    private let listeners: [Socket]
    private let state = Mutex(State())
    private let tails = LogTails()
    private let members = StaticMembers()
    private let isDated: @Sendable (_ topic: String) -> Bool

    /// - Parameters:
    ///   - brokers: their ports, on the loopback interface.
    ///   - isDated: whether a topic's records have the time at which they are appended, and not their producer's.
    /// - Throws: `Socket.Failure` when no port can be had.
    init(
        to brokers: [UInt16], dating isDated: @escaping @Sendable (_ topic: String) -> Bool = { _ in false }
    ) throws(Socket.Failure) {
        self.isDated = isDated
        var listeners: [Socket] = []
        for _ in brokers { listeners.append(try Socket(listeningOn: Self.host)) }
        self.brokers = brokers
        self.listeners = listeners
        ports = listeners.map(\.port)
        redirections = Dictionary(zip(brokers, ports)) { first, _ in first }
        for (broker, listener) in listeners.enumerated() {
            Self.onThread { [self] in
                while let client = listener.accept() {
                    Self.onThread { self.serve(client, broker) }
                }
            }
        }
    }

    /// Ends everything. Only the first call does anything.
    func close() {
        state.withLock { $0.isClosed = true }
        for listener in listeners { listener.shutDown() }
        for broker in brokers.indices { disconnect(broker) }
        tails.endAllWaits()
    }

    /// Nobody may do this any more, or again.
    func set(_ right: Right, isDenied: Bool) {
        state.withLock { if isDenied { $0.denied.insert(right) } else { $0.denied.remove(right) } }
    }

    /// The broker is given faults: from now on it is asked for everything, so that clients see them.
    func showFaults() { state.withLock { $0.isFaulty = true } }

    private func isDenied(_ api: KafkaRequest.API, _ topics: [String]) -> Bool {
        state.withLock { state in topics.contains { state.denied.contains(Right(api: api, topic: $0)) } }
    }

    /// Breaks a broker's connections.
    func disconnect(_ broker: Int) {
        let sockets = state.withLock { $0.connections.values.filter { $0.broker == broker }.flatMap(\.sockets) }
        for socket in sockets { socket.shutDown() }
    }

    private static func onThread(_ work: @escaping @Sendable () -> Void) {
        let thread = Thread(block: work)
        thread.name = "embedded-broker"
        thread.start()
    }

    private func serve(_ client: Socket, _ broker: Int) {
        guard let server = Socket(connectingTo: Self.host, brokers[broker]),
            let number = open(Connection(broker: broker, sockets: [client, server]))
        else { return }
        defer { _ = state.withLock { $0.connections.removeValue(forKey: number) } }
        while let request = client.readFrame(atMost: Self.maxFrame) {
            guard let response = answer(request, server), response.isEmpty || client.writeFrame(response) else {
                return
            }
        }
    }

    private func open(_ connection: Connection) -> Int? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            state.next += 1
            state.connections[state.next] = connection
            return state.next
        }
    }

    /// - Returns: the broker's response, empty when there is none; `nil` when it has broken the connection.
    private func answer(_ bytes: [UInt8], _ server: Socket) -> [UInt8]? {
        guard var request = KafkaRequest(bytes) else { return exchange(bytes, server) }
        switch request.api {
        case .fetch:
            guard let fetch = request.takeFetch() else { return exchange(bytes, server) }
            if isDenied(.fetch, fetch.topics.map(\.name)) {
                return KafkaResponse.refusal(of: fetch, to: request, code: Self.authorizationFailed)
            }
            return answer(fetch, request, server)
        case .produce:
            guard var produce = request.produce() else { return exchange(bytes, server) }
            // In Kafka's order.
            if isDenied(.produce, produce.topics.map(\.name)) {
                return KafkaResponse.refusal(of: produce, to: request, code: Self.authorizationFailed)
            }
            if !(-1...1).contains(produce.acknowledgements) {
                return KafkaResponse.refusal(of: produce, to: request, code: Self.invalidAcknowledgements)
            }
            guard request.date(&produce, isDated, at: Timestamp.now.milliseconds) else {
                return KafkaResponse.refusal(of: produce, to: request, code: Self.unsupportedFormat)
            }
            tails.begin(produce)
            let response = exchange(request.bytes, server)
            tails.end(produce, at: response.flatMap { KafkaResponse.appended($0, version: request.version) })
            return produce.isAnswered ? response : response.map { _ in [] }
        case .metadata, .findCoordinator:
            guard var response = exchange(bytes, server) else { return nil }
            KafkaResponse.redirect(&response, host: Self.host, ports: redirections)
            return response
        case .apiVersions:
            guard var response = exchange(bytes, server) else { return nil }
            KafkaResponse.limitVersions(&response, version: request.version)
            return response
        case .joinGroup, .heartbeat, .syncGroup: return members.answer(request) { exchange(bytes, server) }
        case nil: return exchange(bytes, server)
        }
    }

    private func answer(_ fetch: KafkaRequest.Fetch, _ request: KafkaRequest, _ server: Socket) -> [UInt8]? {
        let deadline = DispatchTime.now() + .milliseconds(Int(fetch.wait.kafkaMilliseconds))
        while true {
            // Before it is asked: what comes right behind its look must not be missed.
            let wait = tails.expect(fetch.topics.map(\.name))
            defer { tails.forget(wait) }
            var reading = state.withLock(\.isFaulty) ? LogTails.Reading() : tails.read(fetch, version: request.version)
            var isRestAsked = false
            let question = request.bytes(of: fetch) { topic, partition in
                let isAsked = reading.found[topic]?[partition.number] == nil
                if isAsked { isRestAsked = true }
                return isAsked
            }
            if isRestAsked {
                guard let response = exchange(question, server) else { return nil }
                guard let rest = KafkaResponse.fetched(response, version: request.version) else { return response }
                tails.learn(rest, after: reading)
                for (topic, partitions) in rest { reading.found[topic, default: [:]].merge(partitions) { $1 } }
            }
            let isEmpty = reading.found.values.allSatisfy { $0.values.allSatisfy(\.isEmpty) }
            guard isEmpty, wait.news.wait(timeout: deadline) == .success, !state.withLock(\.isClosed) else {
                return KafkaResponse.response(to: request, fetch, reading.found)
            }
        }
    }

    private func exchange(_ request: [UInt8], _ server: Socket) -> [UInt8]? {
        guard server.writeFrame(request) else { return nil }
        return server.readFrame(atMost: Self.maxFrame)
    }
}
