// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Apps
@testable import Link
@testable import Runtime

/// L80: whom an erasure erased is erased in a replay, though another command makes the person there.
@Suite struct KeptErasedTests {
    /// What was logged, a second apart; whoever lags decides it in another order.
    private struct Log {
        private(set) var records: [(command: LinkCommand, context: DecisionContext)] = []

        mutating func append(_ command: LinkCommand) -> Int {
            let number = records.count
            let moment = 1000 * Int64(number)
            records.append(
                (
                    command,
                    Fixture.context(
                        id: CommandID("c\(number)"), moment: Moment(milliseconds: moment), now: moment)
                ))
            return number
        }

        @discardableResult
        mutating func live(_ number: Int, in state: inout LinkState) -> LinkDecider.Decision {
            let (command, context) = records[number]
            let decision = Fixture.decide(command, state, context)
            state = state.after(decision)
            for case let kept as KeepErasedPerson in decision.due.map(\.command) {
                live(append(.keepErased(kept)), in: &state)
            }
            return decision
        }

        @discardableResult
        mutating func live(_ command: LinkCommand, in state: inout LinkState) -> LinkDecider.Decision {
            live(append(command), in: &state)
        }

        /// - Returns: what the last one decided, too.
        func replay() -> (state: LinkState, last: LinkDecider.Decision?) {
            var (state, last) = (LinkState(), LinkDecider.Decision?.none)
            for (command, context) in records {
                let decision = Fixture.decide(command, state, context)
                state = state.after(decision)
                last = decision
            }
            return (state, last)
        }
    }

    private static func create(_ install: InstallID, _ name: ExternalID) -> LinkCommand {
        .establish(EstablishLink(installId: install, device: Fixture.phone, externalId: name, mode: .create))
    }

    private static func names(_ state: LinkState) -> Set<ExternalID> {
        Set(state.persons.values.compactMap(\.externalID))
    }

    /// Two commands that name one person, of which the second was decided first.
    private func lagging(_ name: ExternalID, _ log: inout Log, _ state: inout LinkState) throws -> UserID {
        let (first, second) = (log.append(Self.create("i1", name)), log.append(Self.create("i2", name)))
        log.live(second, in: &state)
        log.live(first, in: &state)
        return try #require(state.person(app: "demo", externalID: name)).userID
    }

    @Test func whoHasAnotherUserIDGoes() throws {
        var (log, live) = (Log(), LinkState())
        let user = try lagging("anna", &log, &live)
        let decision = log.live(.eraseUser(EraseUser(userId: user)), in: &live)
        let erasedAt = Timestamp(milliseconds: 2000)
        let kept = try #require(decision.due.first?.command as? KeepErasedPerson)
        #expect(kept.userId == user && kept.erasedAt == erasedAt && !kept.whom.contains("anna"))
        let (replayed, last) = log.replay()
        #expect(Self.names(replayed).isEmpty && replayed.person(userID: user)?.isErased != false)
        let tombstone = replayed.persons.values.first { $0.isErased && $0.userID != user }
        let gone = try #require(tombstone).userID
        #expect(last?.told == [UserErased(userId: gone)])
        #expect(
            last.map { Set($0.forwards.map { AnyHashable($0.command) }) } == [
                AnyHashable(
                    ForgetUser(
                        userId: gone, externalId: "anna",
                        installIds: replayed.installs.values.map(\.id).sorted(), erasedAt: erasedAt)),
                AnyHashable(ForgetProfiles(userId: gone, externalId: "anna", erasedAt: erasedAt)),
            ])
        #expect(last?.due.isEmpty == true)
        let certificate = try #require(replayed.erasure(of: gone)).certificate
        #expect(certificate.subject.userIds == [gone] && certificate.erasedAt == erasedAt)
        // Again, as when the log is read twice.
        #expect(Fixture.decide(.keepErased(kept), replayed, Fixture.context(id: "again")).changes.isEmpty)
    }

    /// Commands that name one external id stand in one partition; those that name an install, in another.
    @Test func whoseFirstRequestCameBeforeItsInstallWasKnownGoes() throws {
        var (log, live) = (Log(), LinkState())
        func register(_ install: InstallID) -> LinkCommand {
            .registerInstall(RegisterInstall(installId: install, device: Fixture.phone, user: .none))
        }
        let (late, early) = (log.append(register("i1")), log.append(register("i2")))
        log.live(early, in: &live)
        #expect(log.live(Fixture.request("i1", "anna"), in: &live).answer == .rejected(.installNotFound))
        log.live(Fixture.request("i2", "anna"), in: &live)
        log.live(late, in: &live)
        let user = try #require(live.person(app: "demo", externalID: "anna")).userID
        log.live(.eraseUser(EraseUser(userId: user)), in: &live)
        let replayed = log.replay().state
        #expect(Self.names(replayed).isEmpty && replayed.persons.count == 1 && replayed.person(userID: user) == nil)
    }

    @Test func nobodyIsLeftToBeFoundWhereTheErasureHasFoundThem() throws {
        var (log, live) = (Log(), LinkState())
        log.live(Self.create("i1", "anna"), in: &live)
        let user = try #require(live.person(app: "demo", externalID: "anna")).userID
        log.live(.eraseUser(EraseUser(userId: user)), in: &live)
        #expect(log.records.count == 3)
        let decision = Fixture.decide(log.records[2].command, live, log.records[2].context)
        #expect(decision.changes.isEmpty && decision.events.isEmpty && decision.forwards.isEmpty)
    }

    @Test func whoComesByTheNameLaterStays() throws {
        var (log, live) = (Log(), LinkState())
        let user = try lagging("anna", &log, &live)
        log.live(.eraseUser(EraseUser(userId: user)), in: &live)
        log.live(Self.create("i3", "anna"), in: &live)
        let next = try #require(live.person(app: "demo", externalID: "anna")).userID
        let (replayed, _) = log.replay()
        #expect(replayed.person(app: "demo", externalID: "anna")?.userID == next)
        // Also when what the service told itself is decided behind it.
        let kept = log.records[3]
        #expect(Fixture.decide(kept.command, replayed, kept.context).changes.isEmpty)
    }

    /// Support's change was by the former id, so the person is called as before.
    @Test func whoHasAFormerNameGoes() throws {
        var (log, live) = (Log(), LinkState())
        let user = try lagging("anna", &log, &live)
        log.live(
            .changeExternalID(
                ChangeExternalID(userId: user, newExternalId: "ann", author: "desk", reason: "spelling")), in: &live)
        #expect(Self.names(live) == ["ann"])
        log.live(.eraseUser(EraseUser(userId: user)), in: &live)
        #expect(Self.names(log.replay().state).isEmpty)
    }

    @Test func whomTheSyncServiceErasesGoes() throws {
        var (log, live) = (Log(), LinkState())
        let user = try lagging("anna", &log, &live)
        log.live(.forget(ForgetPerson(userId: user, erasedAt: Timestamp(milliseconds: 1500))), in: &live)
        #expect(log.records.count == 4 && Self.names(log.replay().state).isEmpty)
    }

    @Test func anotherStoresSaltOpensNothing() throws {
        var (log, live) = (Log(), LinkState())
        let user = try lagging("anna", &log, &live)
        let decision = log.live(.eraseUser(EraseUser(userId: user)), in: &live)
        var kept = try #require(decision.due.first?.command as? KeepErasedPerson)
        kept.whom = String(kept.whom.reversed())
        let refused = Fixture.decide(.keepErased(kept), live, Fixture.context(id: "other"))
        guard case .rejected(let rejection) = refused.outcome else { return #expect(Bool(false), "\(refused)") }
        #expect(rejection.reason == .validationError && rejection.message.contains("salts of before"))
    }

    /// Whatever the service lagged by: in a replay, who was erased is there only if somebody came by the name later, and
    /// nobody else is gone.
    @Test func randomReplaysLeadToWhoWasNotErased() throws {
        var others = 0
        runSequences(300, until: { others > 50 }) { seed in
            var random = SplitMix64(seed: seed)
            var (log, live, waiting) = (Log(), LinkState(), [Int]())
            for _ in 0..<40 {
                let name = ExternalID("n\(Int.random(in: 0..<4, using: &random))")
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<5:
                    let install = InstallID("\(name)-\(Int.random(in: 0..<3, using: &random))")
                    waiting.append(log.append(Self.create(install, name)))
                case 5..<8:
                    guard let number = waiting.randomElement(using: &random) else { continue }
                    waiting.removeAll { $0 == number }
                    log.live(number, in: &live)
                default:
                    // All that was logged of the person is decided, or it would be there again.
                    for number in waiting.shuffled(using: &random) { log.live(number, in: &live) }
                    waiting = []
                    guard let person = live.person(app: "demo", externalID: name) else { continue }
                    log.live(.eraseUser(EraseUser(userId: person.userID)), in: &live)
                }
            }
            for number in waiting.shuffled(using: &random) { log.live(number, in: &live) }
            let replayed = log.replay().state
            #expect(Self.names(replayed) == Self.names(live), "seed \(seed)")
            if Set(replayed.persons.keys) != Set(live.persons.keys) { others += 1 }
        }
        #expect(others > 50, "a replay that makes the same ids proves nothing")
    }
}
