// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing

@testable import Runtime
@testable import Sync

/// Requests of data subjects among whatever else befalls the people (docs/sync.md "Requests of data subjects"): after each
/// step it is judged from outside what the rules forbid.
@Suite struct RandomRequestTests: ErasingTests {
    private static let hour: Int64 = 3_600_000
    private static let ids: [SubjectRequestID] = [
        "a7551968-d5d6-44b2-9831-815ac9017791", "a7551968-d5d6-44b2-9831-815ac9017792",
        "a7551968-d5d6-44b2-9831-815ac9017793",
    ]
    private static let values: [IdentityType: [String]] = [
        .customerID: ["anna", "bert", "carl"], .email: ["x@x", "y@x"], .iosIDFV: ["p", "q"],
    ]

    /// A request as whoever filed it saw the world.
    private struct Filed {
        var request: FileRequest
        /// Whoever had anything that was named, or was named.
        var first: Set<MPID> = []
        var anonymous: Set<MPID> = []
        var startsAt: Int64
    }

    private struct Judge {
        let world: World
        var random: SplitMix64
        var filed: [SubjectRequestID: Filed] = [:]
        var forwards: [CommandID] = []
        var reached: Set<String> = []

        var people: [MPID] { world.state.profiles.values.map(\.mpid).sorted() }

        func holders(_ identities: [Identity]) -> Set<MPID> {
            Set(
                world.state.profiles.values.filter { profile in
                    !profile.isErased && identities.contains { profile.holds($0, world.settings) }
                }.map(\.mpid))
        }

        func isKnown(_ mpid: MPID) -> Bool { world.profile(mpid)?.isKnown(world.settings) == true }

        func row(_ id: SubjectRequestID, in state: SyncState) -> SubjectRequestRow? {
            state.requests[SubjectRequestRow.Key(app: "demo", id: id)]
        }
    }

    private func judge(_ seed: UInt64) -> Judge {
        var random = SplitMix64(seed: seed)
        let world = world(Bool.random(using: &random) ? .link : .conversion, .off)
        if Bool.random(using: &random) { world.settings.uniqueIdentities = [.customerID] }
        world.settings.limits.profilesPerValue = 10
        world.app = AppSettings(
            id: "demo", sync: world.settings,
            verification: VerificationSettings(mode: Bool.random(using: &random) ? .enforce : .off),
            retention: RetentionSettings(anonymous: 86_400_000, orphan: 86_400_000))
        world.principal = Principal(
            kind: .apiKey("k"), scopes: [.identitySync, .identityVouch, .userDelete, .support, .admin])
        return Judge(world: world, random: random)
    }

    // MARK: Steps

    private func identities(_ judge: inout Judge) -> [String: String] {
        var named: [String: String] = [:]
        repeat {
            let type = Self.values.keys.sorted()[Int.random(in: 0..<3, using: &judge.random)]
            named[type.rawValue] = Self.values[type]?.randomElement(using: &judge.random)
        } while Bool.random(using: &judge.random)
        return named
    }

    private func step(_ judge: inout Judge) -> SyncCommand {
        func one<Value>(_ values: [Value], _ judge: inout Judge) -> Value? {
            values.randomElement(using: &judge.random)
        }
        let id = Self.ids[Int.random(in: 0..<3, using: &judge.random)]
        let mpid = one(judge.people, &judge) ?? .max
        let device = DeviceID("d\(Int.random(in: 1...4, using: &judge.random))")
        switch Int.random(in: 0..<100, using: &judge.random) {
        case 0..<18:
            let operation: SyncCommand.Operation = one([.login, .login, .logout, .identify], &judge) ?? .login
            return .move(operation, SyncRequest(deviceId: device, knownIdentities: identities(&judge)))
        case 18..<30:
            let type = Self.values.keys.sorted()[Int.random(in: 0..<3, using: &judge.random)]
            let old = judge.world.profile(mpid)?.values(of: type).first?.value.text
            let new = one([nil] + (Self.values[type] ?? []).map(Optional.some), &judge) ?? nil
            return .modify(
                ModifyIdentities(
                    mpid: mpid, changes: [.init(identityType: type.rawValue, oldValue: old, newValue: new)]))
        case 30..<34: return .erase(EraseProfile(mpid: mpid))
        case 34..<36:
            let seen = judge.world.profile(mpid)?.quietSince ?? 0
            return .expireProfile(ExpireProfile(mpid: mpid, lastSeen: Timestamp(milliseconds: seen)))
        case 36..<50:
            let isByMPID = Int.random(in: 0..<3, using: &judge.random) == 0
            let kind: SubjectRequest.Kind = one([.erasure, .erasure, .access, .portability], &judge) ?? .erasure
            return .fileRequest(
                FileRequest(
                    requestId: id, kind: kind, mpid: isByMPID ? mpid : nil,
                    identities: isByMPID ? [:] : identities(&judge),
                    everyHolder: kind == .erasure && !isByMPID && Int.random(in: 0..<6, using: &judge.random) == 0
                        ? true : nil))
        case 50..<53: return .cancelRequest(CancelRequest(requestId: id))
        case 53..<58: return .getRequestResults(GetRequestResults(requestId: id))
        case 58..<76 where !judge.forwards.isEmpty:
            let forward = judge.forwards.remove(at: Int.random(in: judge.forwards.indices, using: &judge.random))
            let isDone = Int.random(in: 0..<4, using: &judge.random) > 0
            return .answered(ForwardAnswer(forwardID: forward, isPending: false, part: isDone ? .part() : nil))
        default:
            judge.world.now += one([20_000, 2 * Self.hour, 73 * Self.hour, 8 * 24 * Self.hour], &judge) ?? 0
            return .processRequest(ProcessRequest(requestId: id))
        }
    }

    private func run(_ command: SyncCommand, _ judge: inout Judge, _ seed: UInt64) {
        let before = judge.world.state
        let gone = Set(before.profiles.values.filter(\.isErased).map(\.mpid))
        // As it is when the command is decided: a second later.
        if case .fileRequest(let request) = command, judge.row(request.requestId, in: before) == nil {
            let named = Set(request.named.isEmpty ? [] : judge.holders(request.named))
            let first = named.union([request.mpid].compactMap(\.self))
            judge.filed[request.requestId] = Filed(
                request: request, first: first, anonymous: first.filter { !judge.isKnown($0) },
                startsAt: judge.world.now + 1000 + 72 * Self.hour)
        }
        let answer = judge.world.run(command)
        judge.forwards += (judge.world.last?.forwards ?? []).map(\.id)
        if case .fileRequest(let request) = command, judge.row(request.requestId, in: judge.world.state) == nil {
            judge.filed[request.requestId] = nil
        }
        let place: Comment = "seed \(seed), \(command)"
        judgeNews(since: before, judge, place)
        let erased = Set(judge.world.state.profiles.values.filter(\.isErased).map(\.mpid)).subtracting(gone)
        judgeErased(erased, by: command, &judge, place)
        for id in Self.ids {
            guard let filed = judge.filed[id], let row = judge.row(id, in: judge.world.state) else { continue }
            let old = judge.row(id, in: before)
            if row.status == .completed, old?.status != .completed {
                judgeCompleted(row, since: old, filed, &judge, place)
            }
            for mpid in filed.first where row.status == .pending && before.profile("demo", mpid) != nil {
                #expect(judge.world.profile(mpid) != nil, place)  // S202
            }
        }
        if case .processRequest(let command) = command { judgeRetry(command.requestId, since: before, &judge, place) }
        if case .getRequestResults(let query) = command { judgeResults(answer, query.requestId, &judge, place) }
    }

    // MARK: What must hold

    /// S212, S217: it goes forwards alone, not before its time, and each change is told once.
    private func judgeNews(since before: SyncState, _ judge: Judge, _ place: Comment) {
        for id in Self.ids {
            let (old, new) = (judge.row(id, in: before), judge.row(id, in: judge.world.state))
            let told = (judge.world.last?.events ?? []).compactMap { $0 as? RequestChanged }.filter {
                $0.requestId == id
            }
            guard let new, old.map({ ($0.status, $0.reason) != (new.status, new.reason) }) ?? true else {
                #expect(told.isEmpty, place)
                continue
            }
            #expect(
                told == [RequestChanged(requestId: id, kind: new.kind, status: new.status, reason: new.reason)], place)
            let allowed: [SubjectRequest.Status] =
                switch old?.status {
                case nil: [.pending]
                case .pending: [.cancelled, .inProgress, .completed]
                case .inProgress: [.inProgress, .completed]
                case .completed, .cancelled: []
                }
            #expect(allowed.contains(new.status), place)
            if let old, old.status == .pending, new.status != .cancelled {
                #expect(judge.world.now >= judge.filed[id]?.startsAt ?? .max, place)
            }
            if new.status == .cancelled { #expect(!new.isOpen, place) }
        }
    }

    /// S213, S214: whom a request erases had what was named when it came, nobody has logged in to them since, and they are one
    /// unless everybody is meant.
    private func judgeErased(_ erased: Set<MPID>, by command: SyncCommand, _ judge: inout Judge, _ place: Comment) {
        switch command {
        case .erase: return
        case .processRequest(let command):
            guard !erased.isEmpty else { return }
            judge.reached.insert("erased")
            guard let filed = judge.filed[command.requestId] else { return #expect(erased.isEmpty, place) }
            #expect(filed.request.kind == .erasure && erased.isSubset(of: filed.first), place)
            #expect(erased.count == 1 || filed.request.everyHolder == true, place)
        default: #expect(erased.isEmpty, place)
        }
    }

    /// S214 to S217.
    private func judgeCompleted(
        _ row: SubjectRequestRow, since old: SubjectRequestRow?, _ filed: Filed, _ judge: inout Judge, _ place: Comment
    ) {
        judge.reached.insert("completed \(row.kind) of \(min(row.mpids.count, 2))")
        #expect(row.mpid == nil && row.identities.isEmpty && row.first.isEmpty, place)
        #expect(row.profileCount == row.mpids.count && Set(row.mpids).count == row.mpids.count, place)
        guard row.kind == .erasure else {
            #expect(row.mpids.count <= 1 && Set(row.mpids).isSubset(of: filed.first), place)
            if row.mpids.isEmpty { #expect(judge.holders(filed.request.named).isEmpty, place) }
            return
        }
        let named = filed.request.named.filter { row.mpids.isEmpty || !$0.type.isDevice }
        // Who got it while other services did their part came later.
        if old?.identities.isEmpty == false { #expect(judge.holders(named).isEmpty, place) }
        for mpid in row.mpids {
            #expect(judge.world.profile(mpid)?.isErased == true, place)
            let certificate = judge.world.state.certificates[Profile.Key(app: "demo", id: mpid)]?.certificate
            #expect(certificate?.completedAt != nil, place)
        }
        // Whom alone it meant is gone, by whatever. A device's identity means nobody who is known (S90).
        let alone = filed.request.named.count == 1 && filed.request.named.allSatisfy { !$0.type.isDevice }
        if filed.request.mpid != nil || alone, filed.first.count == 1 {
            #expect(filed.first.allSatisfy { judge.world.profile($0)?.isErased ?? true }, place)
        }
    }

    /// S215: a service that could not do its part is asked again, whatever else the request waits for.
    private func judgeRetry(_ id: SubjectRequestID, since before: SyncState, _ judge: inout Judge, _ place: Comment) {
        guard let old = judge.row(id, in: before), old.kind == .erasure, old.status == .inProgress,
            let askAt = old.askAt, askAt <= judge.world.now
        else { return }
        let mine = before.erasures.values.filter { $0.certificate.subject.mpids.contains(where: old.mpids.contains) }
        let isLeft = old.mpids.contains { mpid in
            before.certificates[Profile.Key(app: "demo", id: mpid)]?.certificate.completedAt == nil
        }
        guard isLeft, mine.allSatisfy(\.isStuck) else { return }
        judge.reached.insert("asked again, \(old.reason == .ambiguousIdentity)")
        #expect(judge.world.last?.forwards.isEmpty == false, place)
    }

    /// S213, S216, S217.
    private func judgeResults(
        _ answer: Answer, _ id: SubjectRequestID, _ judge: inout Judge, _ place: Comment
    ) {
        guard let filed = judge.filed[id], let row = judge.row(id, in: judge.world.state), row.kind != .erasure else {
            return
        }
        guard row.status == .completed, let at = row.completedAt else {
            return #expect(answer == .rejected(.resultsNotReady), place)
        }
        guard judge.world.now < at + 7 * 24 * Self.hour else {
            judge.reached.insert("results gone")
            return #expect(answer == .rejected(.resultsGone), place)
        }
        guard case .succeeded(let results as RequestResultsResult)? = judge.world.last?.outcome else {
            return #expect(Bool(false), place)
        }
        for mpid in results.profiles.map(\.mpid) {
            judge.reached.insert("results")
            #expect(filed.first.contains(mpid) && judge.world.profile(mpid)?.isErased == false, place)
            #expect(!(filed.anonymous.contains(mpid) && judge.isKnown(mpid)), place)
        }
    }

    @Test func nobodyIsErasedByMistakeAndNothingIsToldTooEarly() {
        var reached: Set<String> = []
        let wanted: Set<String> = [
            "erased", "completed erasure of 0", "completed erasure of 1", "completed erasure of 2",
            "completed access of 1",
            "results", "results gone", "asked again, true", "asked again, false",
        ]
        runSequences(150, until: { wanted.isSubset(of: reached) }) { seed in
            var judge = judge(seed)
            for _ in 0..<60 { run(step(&judge), &judge, seed) }
            end(&judge, seed)
            reached.formUnion(judge.reached)
        }
        #expect(wanted.subtracting(reached).isEmpty)
    }

    /// When all services answer, nothing waits but for people.
    private func end(_ judge: inout Judge, _ seed: UInt64) {
        for _ in 0..<8 {
            for forward in judge.forwards {
                run(.answered(ForwardAnswer(forwardID: forward, isPending: false, part: .part())), &judge, seed)
            }
            judge.forwards = []
            judge.world.now += 80 * Self.hour
            for id in Self.ids { run(.processRequest(ProcessRequest(requestId: id)), &judge, seed) }
        }
        for id in Self.ids {
            guard let filed = judge.filed[id], let row = judge.row(id, in: judge.world.state) else { continue }
            guard row.status != .completed, row.status != .cancelled else { continue }
            #expect(row.status == .inProgress && row.reason == .ambiguousIdentity, "seed \(seed), \(row)")
            let stay = filed.first.contains { judge.world.profile($0)?.isErased == false }
            #expect(stay || !judge.holders(filed.request.named).isEmpty, "seed \(seed), \(row)")
        }
    }

    // MARK: What it found

    /// S214, S215: somebody else who has the value may keep a request open for ever.
    @Test func aServiceIsAskedAgainAlsoWhileOthersHoldTheValue() throws {
        let world = judge(1).world
        world.settings.uniqueIdentities = [.customerID]
        let anna = try world.given(1, [Identity(.customerID, "anna"), Identity(.email, "family@x")])
        _ = try world.given(2, [Identity(.customerID, "bert"), Identity(.email, "family@x")])
        let id = Self.ids[0]
        world.run(
            .fileRequest(
                FileRequest(
                    requestId: id, kind: .erasure, identities: ["customerid": "anna", "email": "family@x"])))
        func answer(_ part: ErasureCertificate?) {
            for forward in world.last?.forwards ?? [] {
                world.run(.answered(ForwardAnswer(forwardID: forward.id, isPending: false, part: part)))
            }
        }
        world.now += 73 * Self.hour
        world.run(.processRequest(ProcessRequest(requestId: id)))
        answer(nil)
        world.now += 2 * Self.hour
        world.run(.processRequest(ProcessRequest(requestId: id)))
        #expect(world.last?.forwards.contains { $0.command is ForgetPerson } == true)
        answer(.part())
        world.run(.getRequest(GetRequest(requestId: id)))
        guard case .succeeded(let status as SubjectRequestResult)? = world.last?.outcome else {
            Issue.record("the request is not there")
            return
        }
        #expect(status.status == .inProgress && status.reason == .ambiguousIdentity)
        #expect(status.certificates?.first?.subject.mpids == [anna] && status.certificates?.first?.completedAt != nil)
    }

    /// S215: somebody's erasure that failed does not wait for another's that others are still at (TEST_SEED=12837878551020621715).
    @Test func aServiceIsAskedAgainAlsoWhileAnotherErasureIsUnderWay() throws {
        let world = judge(1).world
        world.settings.uniqueIdentities = [.customerID]
        let family = try [1, 2].map { try world.given($0, [Identity(.email, "family@x")]) }
        let id = Self.ids[0]
        world.run(.fileRequest(FileRequest(requestId: id, kind: .erasure, identities: ["email": "family@x"])))
        func erase(_ mpid: MPID) -> [Forward] {
            world.run(.erase(EraseProfile(mpid: mpid)))
            return world.last?.forwards ?? []
        }
        func answer(_ forwards: [Forward], _ part: ErasureCertificate?) {
            for forward in forwards {
                world.run(.answered(ForwardAnswer(forwardID: forward.id, isPending: false, part: part)))
            }
        }
        func goOn(after hours: Int64) throws -> SubjectRequestRow {
            world.now += hours * Self.hour
            world.run(.processRequest(ProcessRequest(requestId: id)))
            return try #require(world.state.requests[SubjectRequestRow.Key(app: "demo", id: id)])
        }
        answer(erase(family[0]), nil)
        let underWay = erase(family[1])
        #expect(try goOn(after: 73).status == .inProgress)
        let again = world.last?.forwards ?? []
        #expect(again.map { AnyHashable($0.command) } == [AnyHashable(ForgetSessions(mpids: [family[0]]))])
        answer(again, .part())
        #expect(try goOn(after: 2).status == .inProgress)
        #expect(world.last?.forwards.isEmpty == true)
        answer(underWay, .part())
        #expect(try goOn(after: 1).status == .completed)
    }
}
