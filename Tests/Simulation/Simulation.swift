// SPDX-License-Identifier: Apache-2.0

import TestKit

/// One run, in full: a seed gives one, and leaving parts out gives smaller ones.
struct Plan {
    var seed: UInt64
    var service: SimulatedService
    var replicas: Int
    var batchSize: Int
    var commands: [PlannedCommand]
    var faults: [Fault]

    /// Whether records are lost that were written, so that their senders must send again. In all other runs nobody
    /// does: a service that passes over a record would go unnoticed.
    var isLogLossy: Bool {
        !Set(faults.map(\.kind)).isDisjoint(with: [.retention, .truncate, .recreate, .newCluster])
    }

    init(seed: UInt64, service: SimulatedService) {
        self.seed = seed
        self.service = service
        var random = SplitMix64(seed: seed)
        replicas = [1, 2, 2, 2, 3][Int.random(in: 0..<5, using: &random)]
        batchSize = [1, 2, 5, 5, 20][Int.random(in: 0..<5, using: &random)]
        let span: Int64 = 6_000_000
        commands = (1...Int.random(in: 12...36, using: &random)).map { number in
            let earlier = Int.random(in: 1...max(1, number - 1), using: &random)
            let kind: PlannedCommand.Kind =
                switch Int.random(in: 0..<100, using: &random) {
                case 0..<74: .fresh
                case 74..<84 where number > 1: .again(of: earlier)
                case 84..<90 where number > 1: .reused(of: earlier)
                case 90..<94: .dryRun
                case 94..<97: .poison
                default: .forged
                }
            return PlannedCommand(
                number: number, time: Int64.random(in: 0...span, using: &random), kind: kind, seed: random.next())
        }
        commands.sort { ($0.time, $0.number) < ($1.time, $1.number) }
        // Few kinds in a run: otherwise the loudest hide the others.
        var kinds = Fault.Kind.allCases.filter { kind in
            let percent =
                switch kind {
                case .putStoreBack, .newCluster, .truncate, .retention, .recreate: 10
                default: 25
                }
            return Int.random(in: 0..<100, using: &random) < percent
        }
        if kinds.contains(.putStoreBack) { kinds += [.copyStore] }
        let count = kinds.isEmpty ? 0 : Int.random(in: 0...14, using: &random)
        faults = (0..<count).map { _ in
            Fault(
                time: Int64.random(in: 0...span * 3 / 2, using: &random),
                kind: kinds[Int.random(in: kinds.indices, using: &random)], seed: random.next())
        }.sorted { $0.time < $1.time }
    }
}

/// What a run came to.
public struct Verdict: Sendable {
    public var violations: [String]
    /// What happened, line by line, when that was asked for.
    public var notes: [String]
    public var steps: Int
    /// Of the world that was made up.
    public var seconds: Double
    public var written: Int
    public var faults: [String]
}

/// Runs seeds. Not thread-safe: the runs of a process come one after the other.
public final class Simulation {
    private let kit: Kit

    /// - Throws: when there is no room for the empty stores.
    public init() throws { kit = try Kit() }

    /// The service that a seed is about, if nobody says another one.
    public static func service(of seed: UInt64) -> SimulatedService {
        SimulatedService.allCases[Int(seed % UInt64(SimulatedService.allCases.count))]
    }

    /// - Parameter isTracing: whether to note what happens.
    public func run(seed: UInt64, _ service: SimulatedService? = nil, isTracing: Bool = false) throws -> Verdict {
        try run(Plan(seed: seed, service: service ?? Self.service(of: seed)), isTracing: isTracing)
    }

    func run(_ plan: Plan, isTracing: Bool = false) throws -> Verdict {
        let world = World(kit, seed: plan.seed, isTracing: isTracing)
        let client = Client(world, plan.service)
        let peers = Peers(world, beside: plan.service.deployed)
        defer { withExtendedLifetime(peers) {} }
        for service in plan.service.deployed {
            try world.deploy(
                service, replicas: service == plan.service ? plan.replicas : 1, batchSize: plan.batchSize)
        }
        for command in plan.commands {
            world.scheduler.after(command.time) { client.send(command) }
        }
        for fault in plan.faults { world.scheduler.after(fault.time) { fault.happen(in: world) } }
        let end = max(plan.commands.last?.time ?? 0, plan.faults.last?.time ?? 0)
        world.scheduler.pause(end + 1)
        world.heal()
        peers.isReliable = true
        world.note("nothing goes wrong any more")
        let isSettled = settle(world, client, plan, since: 0, within: 400, "unanswered")
        if isSettled {
            publishAll(world)
            askAgain(world, client, plan)
            letFinish(world)
        }
        world.end()
        world.violations += judge(world, plan)
        return Verdict(
            violations: world.violations, notes: world.notes, steps: world.scheduler.steps,
            seconds: Double(world.scheduler.now) / 1_000_000, written: world.log.written.count,
            faults: plan.faults.map(\.kind.rawValue))
    }

    /// Waits until everything is answered.
    private func settle(
        _ world: World, _ client: Client, _ plan: Plan, since place: Int, within seconds: Int64, _ what: String
    ) -> Bool {
        let deadline = world.scheduler.now + seconds * 1_000_000
        var nextTry = world.scheduler.now + 5_000_000
        while true {
            world.scheduler.pause(100_000)
            let missing = client.unanswered(since: place)
            if missing.isEmpty { return true }
            if world.scheduler.now > deadline {
                let names = missing.compactMap { client.sent[$0].map { "\($0.id) (\($0.kind))" } }
                world.violations.append("STALLED: \(what) after \(seconds) s: \(names.joined(separator: ", "))")
                return false
            }
            if plan.isLogLossy, world.scheduler.now >= nextTry {
                nextTry = world.scheduler.now + 10_000_000
                client.sendAgain(missing)
            }
        }
    }

    /// Whatever was decided is published, and known to be, without anybody sending anything.
    private func publishAll(_ world: World) {
        let deadline = world.scheduler.now + 120_000_000
        while true {
            let left = world.deployments.filter { $0.store.unpublished > 0 }
            if left.isEmpty { return }
            guard world.scheduler.now < deadline else {
                let rows = left.map { "\($0.store.unpublished) of \($0.service) (\($0.store.unpublishedPlaces))" }
                    .joined(separator: ", ")
                return world.violations.append("LEFT: rows of the outbox: \(rows)")
            }
            world.scheduler.pause(500_000)
        }
    }

    /// Waits until nothing is written any more: what is not answered is published too.
    private func letFinish(_ world: World) {
        var known = -1
        for _ in 0..<30 where known != world.log.written.count {
            known = world.log.written.count
            world.scheduler.pause(4_000_000)
        }
    }

    /// Everything once more: the same answers, and nothing else.
    private func askAgain(_ world: World, _ client: Client, _ plan: Plan) {
        let place = world.log.written.count
        world.note("everything is sent once more")
        client.sendAgain(client.sent.keys.sorted())
        guard settle(world, client, plan, since: place, within: 120, "not answered again"), plan.service == .link else {
            return
        }
        let questions = Array(100_000..<100_000 + Workload.installs.count)
        let workload = Workload(.link, seed: 0)
        for (number, install) in zip(questions, Workload.installs) {
            client.ask(workload.query(install), number: number)
        }
        guard settle(world, client, plan, since: 0, within: 120, "a question is not answered") else { return }
        world.violations += client.linkInvariants(questions)
    }

    private func judge(_ world: World, _ plan: Plan) -> [String] {
        let kinds = Set(plan.faults.map(\.kind))
        return Oracle(
            log: world.log, deployed: Set(plan.service.deployed.map { "identitybus/\($0.rawValue)" }),
            isStorePutBack: kinds.contains(.putStoreBack), isLogLossy: plan.isLogLossy
        ).violations()
    }
}

// MARK: Shorter ones

extension Simulation {
    /// Leaves out faults and commands as long as the run still fails.
    /// - Returns: the shortest run that was found, with what happens in it.
    public func shortest(
        seed: UInt64, _ service: SimulatedService? = nil, attempts: Int = 150
    ) throws -> (commands: Int, faults: [String], verdict: Verdict) {
        var plan = Plan(seed: seed, service: service ?? Self.service(of: seed))
        var left = attempts
        func failure(_ plan: Plan) throws -> Substring? {
            left -= 1
            return try run(plan).violations.first?.prefix { $0 != ":" }
        }
        let first = try failure(plan)
        // In the same way.
        func fails(_ plan: Plan) throws -> Bool { try failure(plan) == first }
        func shorten<Part>(_ parts: WritableKeyPath<Plan, [Part]>) throws {
            var size = max(1, plan[keyPath: parts].count / 2)
            while true {
                var start = 0
                while start < plan[keyPath: parts].count, left > 0 {
                    var smaller = plan
                    let end = min(start + size, plan[keyPath: parts].count)
                    smaller[keyPath: parts].removeSubrange(start..<end)
                    if try fails(smaller) { plan = smaller } else { start = end }
                }
                if size == 1 || left <= 0 { return }
                size /= 2
            }
        }
        try shorten(\.faults)
        try shorten(\.commands)
        try shorten(\.faults)
        return (plan.commands.count, plan.faults.map(\.kind.rawValue), try run(plan, isTracing: true))
    }
}
