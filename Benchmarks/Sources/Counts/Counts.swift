// SPDX-License-Identifier: Apache-2.0

import Apps
import CAllocations
import Contracts
import Crypto
import Glibc
import Link
import Messaging
import Runtime

/// Counts what one `link.request` costs where nothing depends on the machine's mood: reading and authenticating its
/// record, and writing and signing its event and its reply.
///
///     identitybus-counts [COMMANDS [read|write|both|none]]
///
/// Prints heap allocations, and the processor's time of this thread. Instructions are counted from outside: the
/// difference between two runs of different length under valgrind, see scripts/bench.
@main
struct Counts {
    static func main() throws {
        let arguments = CommandLine.arguments.dropFirst()
        let commands = arguments.first.flatMap { Int($0) } ?? 10_000
        let part = arguments.dropFirst().first ?? "both"
        let workload = try LinkWorkload()
        try workload.read(count: 100)
        try workload.write(count: 100)
        if part == "read" || part == "both" {
            try report("read", commands) { try workload.read(count: commands) }
        }
        if part == "write" || part == "both" {
            try report("write", commands) { try workload.write(count: commands) }
        }
    }

    private static func report(_ name: String, _ commands: Int, _ body: () throws -> Void) rethrows {
        let before = (allocations_count(), processorTime())
        try body()
        let after = (allocations_count(), processorTime())
        let allocations = tenths(Double(after.0 - before.0) / Double(commands))
        let microseconds = tenths((after.1 - before.1) * 1e6 / Double(commands))
        print("link.request \(name): \(allocations) allocations, \(microseconds) us a command")
    }

    private static func tenths(_ number: Double) -> Double { (number * 10).rounded() / 10 }

    private static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
    }
}

/// A link request as a backend sends it, and the decision on it that is made most often.
struct LinkWorkload {
    struct Refused: Error {}

    private let path: CommandPath<LinkService>
    private let records: [KafkaRecord]
    private let accepted: [CommandPath<LinkService>.Accepted]
    private let decision: Decision<LinkState.Change>

    init() throws {
        let secret = SymmetricKey(data: Array("bench-secret-bench-key-with-32-bytes".utf8))
        let key = APIKey(id: "bench-key", secret: secret, scopes: [.userLink], expires: nil, isRevoked: false)
        let topics = Topics()
        let now = Timestamp(milliseconds: 1_770_000_000_000)
        path = CommandPath(
            apps: AppDirectory([AppSettings(id: "bench", keys: [key.id: key])]),
            keys: DeploymentKeys(internalKeys: [SymmetricKey(data: Array("bench-internal-key-0123456789".utf8))]),
            topics: topics, now: now)
        let seal = Seal(key.id, secret)
        records = try (0..<64).map { number in
            let request = LinkRequest(
                installId: "install-00000000\(1000 + number)", externalId: "person-\(1000 + number)")
            var attributes = EventAttributes(
                id: "command-\(1000 + number)", source: "https://shop.example/backend", type: LinkRequest.type,
                appID: "bench")
            let key = partitionKey(app: "bench", subject: request.partitionSubject)
            attributes.subject = request.partitionSubject
            attributes.time = now.rfc3339
            attributes.dataContentType = "application/json"
            attributes.partitionKey = key
            attributes.traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            let record = try seal.record(
                to: topics.commands(LinkService.name), key: Array(key.utf8), attributes, request)
            return KafkaRecord(
                topicPartition: TopicPartition(topic: record.topic, partition: 3), offset: Int64(number),
                timestampMs: now.milliseconds, key: record.key, value: record.value, headers: record.headers)
        }
        let path = path
        accepted = try records.map { record in
            guard let accepted = path.read(record), accepted.body != nil else { throw Refused() }
            return accepted
        }
        decision = Decision(
            .succeeded(
                LinkResult(
                    userId: "5a18fc4b0962209e0000000d", installId: "install-000000001000", isActive: true,
                    personCreated: false, version: 3)),
            events: [
                Linked(
                    installId: "install-000000001000", externalId: "person-1000", userId: "5a18fc4b0962209e0000000d",
                    personCreated: false, activeInstallId: "install-000000001000",
                    deactivatedInstallIds: ["install-000000000999"], version: 3)
            ])
    }

    func read(count: Int) throws {
        for number in 0..<count {
            guard path.read(records[number % records.count]) != nil else { throw Refused() }
        }
    }

    func write(count: Int) throws {
        for number in 0..<count {
            let messages = try path.write(decision, to: accepted[number % accepted.count])
            guard messages.count == 2 else { throw Refused() }
        }
    }
}
