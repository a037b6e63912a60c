// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing

@testable import Runtime
@testable import Sync

/// What data subjects ask for (docs/sync.md "Requests of data subjects").
@Suite struct SubjectRequestTests: ErasingTests {
    private struct Unexpected: Error {}

    private static let id: SubjectRequestID = "a7551968-d5d6-44b2-9831-815ac9017798"
    private static let hour: Int64 = 3_600_000

    private func desk(_ strategy: SyncStrategy = .link) -> World {
        let world = world(strategy)
        // Several people may have one e-mail, as where a family shares a mailbox.
        world.settings.uniqueIdentities = [.customerID]
        world.principal = Principal(
            kind: .apiKey("k"), scopes: [.identitySync, .identityVouch, .userDelete, .support, .admin])
        return world
    }

    private func filing(
        _ kind: SubjectRequest.Kind = .erasure, _ identities: [String: String] = ["customerid": "anna"],
        mpid: MPID? = nil, everyHolder: Bool? = nil, group: String? = nil
    ) -> FileRequest {
        FileRequest(
            requestId: Self.id, kind: kind, mpid: mpid, identities: mpid == nil ? identities : [:],
            everyHolder: everyHolder, regulation: "gdpr", groupId: group)
    }

    @discardableResult
    private func file(_ filing: FileRequest, in world: World) throws -> SubjectRequestResult {
        world.run(.fileRequest(filing))
        return try result(world)
    }

    private func result(_ world: World) throws -> SubjectRequestResult {
        guard case .succeeded(let result as SubjectRequestResult)? = world.last?.outcome else { throw Unexpected() }
        return result
    }

    private func status(_ world: World) throws -> SubjectRequestResult {
        world.run(.getRequest(GetRequest(requestId: Self.id)))
        return try result(world)
    }

    private func results(_ world: World) throws -> RequestResultsResult {
        world.run(.getRequestResults(GetRequestResults(requestId: Self.id)))
        guard case .succeeded(let results as RequestResultsResult)? = world.last?.outcome else { throw Unexpected() }
        return results
    }

    /// Its time has come.
    private func goOn(_ world: World, after hours: Int64 = 72) {
        world.now += hours * Self.hour
        world.run(.processRequest(ProcessRequest(requestId: Self.id)))
    }

    private func answerAll(_ world: World) {
        for forward in world.last?.forwards ?? [] {
            world.run(.answered(ForwardAnswer(forwardID: forward.id, isPending: false, part: .part())))
        }
    }

    private func person(_ mpid: Int64, _ identities: Identity..., in world: World) throws -> MPID {
        try world.given(mpid, identities)
    }

    // MARK: Filing and cancelling

    /// S211, S212.
    @Test func itWaitsUntilItsTimeHasComeAndIsToldOnce() throws {
        let world = desk()
        let anna = try person(7, Identity(.customerID, "anna"), in: world)
        let filed = try file(filing(group: "g"), in: world)
        #expect(filed.status == .pending && filed.startsAt.milliseconds == world.now + 72 * Self.hour)
        #expect(
            world.events == [
                AnyHashable(RequestChanged(requestId: Self.id, kind: .erasure, status: .pending, reason: nil))
            ])
        #expect(try file(filing(group: "g"), in: world) == filed)
        #expect(world.events.isEmpty)
        world.run(.fileRequest(filing(group: "h")))
        #expect(world.run(.fileRequest(filing(group: "h"))) == .rejected(.invalidRequest))
        goOn(world, after: 71)
        #expect(world.profile(anna)?.isErased == false)
        world.run(.getRequests(GetRequests(groupId: "g")))
        guard case .succeeded(let group as SubjectRequestsResult)? = world.last?.outcome else { throw Unexpected() }
        #expect(group.requests.map(\.requestId) == [Self.id])
    }

    /// S212: cancel in time, and not later.
    @Test func itIsCancelledInTime() throws {
        let world = desk()
        let anna = try person(7, Identity(.customerID, "anna"), in: world)
        try file(filing(), in: world)
        world.run(.cancelRequest(CancelRequest(requestId: Self.id)))
        #expect(try result(world).status == .cancelled)
        goOn(world)
        #expect(world.profile(anna)?.isErased == false && world.state.requests.values.allSatisfy { !$0.isOpen })
        world.run(.cancelRequest(CancelRequest(requestId: Self.id)))
        #expect(try result(world).status == .cancelled)
    }

    @Test func whatHasBegunIsNotCancelled() throws {
        let world = desk()
        _ = try person(7, Identity(.customerID, "anna"), in: world)
        try file(filing(), in: world)
        goOn(world)
        #expect(world.run(.cancelRequest(CancelRequest(requestId: Self.id))) == .rejected(.requestStarted))
    }

    /// S212: a clock that is ahead takes nobody the time.
    @Test func theBrokersClockCountsToo() throws {
        let world = desk()
        let anna = try person(7, Identity(.customerID, "anna"), in: world)
        try file(filing(), in: world)
        world.now += 14 * 24 * Self.hour
        world.count += 1
        var context = world.context
        context.logged = Moment(milliseconds: world.now - 14 * 24 * Self.hour, isBrokers: true)
        let decision = SyncDecider(world.state, context, aliasDelay: 1000)
            .decide(.processRequest(ProcessRequest(requestId: Self.id)))
        decision.changes.forEach { world.state.apply($0) }
        #expect(world.profile(anna)?.isErased == false && decision.forwards.isEmpty)
        #expect(try status(world).status == .pending)
    }

    /// S210.
    @Test(arguments: [
        (SubjectRequest.Kind.erasure, [Scope.support], false), (.erasure, [.userDelete], true),
        (.access, [.userDelete], false), (.access, [.support], true), (.portability, [.support], true),
    ])
    func whoMayAsk(_ kind: SubjectRequest.Kind, _ scopes: [Scope], _ isAllowed: Bool) throws {
        let world = desk()
        _ = try person(7, Identity(.customerID, "anna"), in: world)
        world.principal = Principal(kind: .apiKey("k"), scopes: Set(scopes))
        #expect((world.run(.fileRequest(filing(kind))) == .rejected(.insufficientScope)) != isAllowed)
        let every = world.run(.fileRequest(filing(everyHolder: true)))
        #expect(every == .rejected(.insufficientScope))
        if isAllowed {
            world.principal = Principal(kind: .apiKey("k"), scopes: [])
            #expect(world.run(.getRequest(GetRequest(requestId: Self.id))) == .rejected(.insufficientScope))
        }
    }

    @Test func whoNamesNobodyIsRefused() {
        let world = desk()
        #expect(world.run(.fileRequest(filing(.erasure, ["email": "null@x"]))) == .another)
        #expect(world.run(.fileRequest(filing(.erasure, ["customerid": "null"]))) == .rejected(.validationError))
        #expect(world.run(.getRequest(GetRequest(requestId: "none"))) == .rejected(.notFoundError))
    }

    // MARK: Erasure

    /// S214, S215.
    @Test func anErasureIsCompletedWhenAllHaveErased() throws {
        let world = desk()
        let anna = try person(7, Identity(.customerID, "anna"), Identity(.iosIDFV, "shared"), in: world)
        _ = try person(8, Identity(.customerID, "bert"), Identity(.iosIDFV, "shared"), in: world)
        try file(filing(.erasure, ["customerid": "anna", "ios_idfv": "shared"]), in: world)
        goOn(world)
        #expect(world.profile(anna)?.isErased == true)
        let began = try #require(world.last)
        #expect(try status(world).status == .inProgress)
        world.now += 20_000
        world.run(.processRequest(ProcessRequest(requestId: Self.id)))
        #expect(try status(world).status == .inProgress)
        world.last = began
        answerAll(world)
        world.now += 20_000
        world.run(.processRequest(ProcessRequest(requestId: Self.id)))
        let done = try status(world)
        #expect(done.status == .completed && done.reason == nil && done.profileCount == 1)
        // Another person uses the same device.
        #expect(done.heldByOthers == 1)
        #expect(done.certificates?.first?.completedAt != nil && done.certificates?.first?.subject.mpids == [anna])
    }

    /// S215: not while a service has yet to do its part for another request about the same person.
    /// Also when that one has erased the profile before this one comes, and names it.
    @Test(arguments: [(true, false), (false, false), (true, true)])
    func whomAnotherRequestErasesIsWaitedFor(_ isByMPID: Bool, _ isFiledLater: Bool) throws {
        let world = desk()
        let anna = try person(7, Identity(.customerID, "anna"), in: world)
        if !isFiledLater { try file(filing(mpid: isByMPID ? anna : nil), in: world) }
        world.run(.erase(EraseProfile(mpid: anna)))
        let began = try #require(world.last)
        if isFiledLater { try file(filing(mpid: anna), in: world) }
        goOn(world)
        #expect(try status(world).status == .inProgress)
        world.last = began
        answerAll(world)
        goOn(world, after: 2)
        let done = try status(world)
        #expect(done.status == .completed && done.profileCount == 1)
        #expect(done.certificates?.first?.subject.mpids == [anna])
    }

    /// S214: an erasure by e-mail where several hold it is never reported as complete.
    @Test(arguments: [1, 2, 3]) func whereSeveralHoldTheValueItIsNeverCompleted(_ count: Int) throws {
        let world = desk()
        let people = try (1...count).map { try person(Int64($0), Identity(.email, "family@x"), in: world) }
        try file(filing(.erasure, ["email": "family@x"]), in: world)
        goOn(world)
        answerAll(world)
        for _ in 0..<3 {
            goOn(world, after: 2)
            let status = try status(world)
            #expect(status.status == (count == 1 ? .completed : .inProgress))
            #expect((status.reason == .ambiguousIdentity) == (count > 1))
            #expect(people.allSatisfy { world.profile($0)?.isErased == (count == 1) })
        }
        if count == 1 { return }
        // Until somebody erases them by MPID.
        for mpid in people {
            world.run(.erase(EraseProfile(mpid: mpid)))
            answerAll(world)
        }
        goOn(world, after: 2)
        #expect(try status(world).status == .completed)
    }

    /// S214: who is certain goes, and it is not over while others hold the e-mail.
    @Test func whoIsCertainGoesAndOthersKeepItOpen() throws {
        let world = desk()
        let anna = try person(1, Identity(.customerID, "anna"), Identity(.email, "family@x"), in: world)
        let bert = try person(2, Identity(.customerID, "bert"), Identity(.email, "family@x"), in: world)
        try file(filing(.erasure, ["customerid": "anna", "email": "family@x"]), in: world)
        goOn(world)
        #expect(world.profile(anna)?.isErased == true && world.profile(bert)?.isErased == false)
        answerAll(world)
        goOn(world, after: 2)
        let status = try status(world)
        #expect(status.status == .inProgress && status.reason == .ambiguousIdentity && status.heldByOthers == 1)
        world.run(
            .modify(
                ModifyIdentities(mpid: bert, changes: [.init(identityType: "email", oldValue: "family@x")])))
        goOn(world, after: 2)
        #expect(try self.status(world).status == .completed)
    }

    /// S214.
    @Test func everyHolderGoesWhereThatIsSaid() throws {
        let world = desk()
        let people = try [1, 2].map { try person($0, Identity(.email, "family@x"), in: world) }
        try file(filing(.erasure, ["email": "family@x"], everyHolder: true), in: world)
        goOn(world)
        #expect(people.allSatisfy { world.profile($0)?.isErased == true })
        answerAll(world)
        goOn(world, after: 1)
        #expect(try status(world).status == .completed)
    }

    /// S214: also where one of them has everything that was named.
    @Test func everyHolderOfAnythingGoes() throws {
        let world = desk()
        let anna = try person(1, Identity(.customerID, "anna"), Identity(.email, "family@x"), in: world)
        let bert = try person(2, Identity(.customerID, "bert"), Identity(.email, "family@x"), in: world)
        try file(filing(.erasure, ["customerid": "anna", "email": "family@x"], everyHolder: true), in: world)
        goOn(world)
        #expect([anna, bert].allSatisfy { world.profile($0)?.isErased == true })
        answerAll(world)
        goOn(world, after: 1)
        #expect(try status(world).status == .completed)
    }

    /// S213: an anonymous profile that somebody logs in to meanwhile is another person's.
    @Test(arguments: SubjectRequest.Kind.allCases, [true, false])
    func whoLogsInMeanwhileIsNotMeant(_ kind: SubjectRequest.Kind, _ isByMPID: Bool) throws {
        let world = desk()
        let nobody = try person(7, Identity(.iosIDFV, "tablet"), in: world)
        try file(filing(kind, ["ios_idfv": "tablet"], mpid: isByMPID ? nobody : nil), in: world)
        try world.modify(nobody, "customerid", from: nil, to: "bert")
        goOn(world)
        #expect(world.profile(nobody)?.isErased == false)
        let status = try status(world)
        #expect(status.status == .inProgress && status.reason == .ambiguousIdentity && status.profileCount == 0)
    }

    /// S213, S217.
    @Test func whoLogsInAfterwardsIsNotInTheResults() throws {
        let world = desk()
        let nobody = try person(7, Identity(.iosIDFV, "tablet"), in: world)
        try file(filing(.access, ["ios_idfv": "tablet"]), in: world)
        goOn(world)
        #expect(try results(world).profiles.map(\.mpid) == [nobody])
        try world.modify(nobody, "customerid", from: nil, to: "bert")
        #expect(try results(world).profiles.isEmpty)
    }

    /// S214: who changes what was named is not forgotten about.
    @Test(arguments: SubjectRequest.Kind.allCases) func whoHasAnotherNameByThenKeepsItOpen(_ kind: SubjectRequest.Kind)
        throws
    {
        let world = desk()
        let anna = try person(7, Identity(.customerID, "anna"), Identity(.email, "old@x"), in: world)
        try file(filing(kind, ["email": "old@x"]), in: world)
        try world.modify(anna, "email", from: "old@x", to: "new@x")
        goOn(world)
        let open = try status(world)
        #expect(open.status == .inProgress && open.reason == .ambiguousIdentity && open.heldByOthers == 1)
        world.run(.erase(EraseProfile(mpid: anna)))
        answerAll(world)
        goOn(world, after: 2)
        #expect(try status(world).status == .completed)
    }

    /// S218.
    @Test(arguments: [["customerid": "anna"], ["email": "a@x"]])
    func theUserOfTheNamedCustomerIDIsMeantToo(_ named: [String: String]) throws {
        let world = desk()
        _ = try person(7, Identity(.customerID, "anna"), Identity(.email, "a@x"), in: world)
        try file(filing(.erasure, named), in: world)
        goOn(world)
        let persons = (world.last?.forwards ?? []).compactMap { ($0.command as? ForgetPerson)?.externalId }
        #expect(persons == (named["customerid"] == nil ? [] : ["anna"]))
    }

    /// S218.
    @Test(arguments: [["customerid": "anna"], ["email": "a@x"]])
    func theResultsNameTheUserOfTheNamedCustomerID(_ named: [String: String]) throws {
        let world = desk()
        _ = try person(7, Identity(.customerID, "anna"), Identity(.email, "a@x"), in: world)
        try file(filing(.access, named), in: world)
        goOn(world)
        #expect(try results(world).externalIds == (named["customerid"] == nil ? [] : ["anna"]))
    }

    /// S213: nobody is added meanwhile.
    @Test(arguments: SubjectRequest.Kind.allCases) func whoComesMeanwhileIsNotMeant(_ kind: SubjectRequest.Kind) throws
    {
        let world = desk()
        try file(filing(kind, ["email": "a@x"]), in: world)
        let late = try person(7, Identity(.email, "a@x"), in: world)
        goOn(world)
        #expect(world.profile(late)?.isErased == false)
        let status = try status(world)
        #expect(status.status == .inProgress && status.reason == .ambiguousIdentity && status.profileCount == 0)
    }

    /// S215: whether somebody was there is told to nobody.
    @Test(arguments: SubjectRequest.Kind.allCases) func whereNobodyIsItIsCompleted(_ kind: SubjectRequest.Kind) throws {
        let world = desk()
        try file(filing(kind, ["email": "a@x"]), in: world)
        #expect(try status(world).status == .pending)
        goOn(world)
        let status = try status(world)
        #expect(status.status == .completed && status.certificates == nil && status.profileCount == 0)
    }

    /// S215.
    @Test func aServiceThatCouldNotIsAskedAgain() throws {
        let world = desk()
        let anna = try person(7, Identity(.customerID, "anna"), in: world)
        try file(filing(.erasure, mpid: anna), in: world)
        goOn(world)
        for forward in world.last?.forwards ?? [] {
            world.run(.answered(ForwardAnswer(forwardID: forward.id, isPending: false, part: nil)))
        }
        goOn(world, after: 1)
        #expect(world.last?.forwards.isEmpty == false)
        answerAll(world)
        goOn(world, after: 2)
        #expect(try status(world).status == .completed)
    }

    /// S212: a replay begins it when it was begun, whatever the app's delay is by then.
    @Test func theDelayOfThenCounts() throws {
        let world = desk()
        let anna = try person(7, Identity(.customerID, "anna"), in: world)
        try file(filing(), in: world)
        world.now += Self.hour
        let (asked, later) = (Timestamp(milliseconds: world.now), Timestamp(milliseconds: world.now + Self.hour))
        world.run(.processRequest(ProcessRequest(requestId: Self.id, startsAt: later)))
        #expect(world.profile(anna)?.isErased == false)
        world.run(.processRequest(ProcessRequest(requestId: Self.id, startsAt: asked)))
        #expect(world.profile(anna)?.isErased == true)
    }

    // MARK: Access

    /// S216, S217.
    @Test(arguments: [SubjectRequest.Kind.access, .portability])
    func resultsCanBeHadForSevenDays(_ kind: SubjectRequest.Kind) throws {
        let world = desk()
        let anna = try person(7, Identity(.customerID, "anna"), Identity(.email, "a@x"), in: world)
        let ask = SyncCommand.getRequestResults(GetRequestResults(requestId: Self.id))
        #expect(world.run(ask) == .rejected(.notFoundError))
        try file(filing(kind), in: world)
        #expect(world.run(ask) == .rejected(.resultsNotReady))
        goOn(world)
        let done = try status(world)
        #expect(done.status == .completed && done.profileCount == 1 && done.resultsUntil != nil)
        // What is known then, and not when it was asked.
        try world.modify(anna, "other", from: nil, to: "o")
        let results = try results(world)
        #expect(results.profiles.map(\.mpid) == [anna] && results.profiles.first?.identities["other"] == ["o"])
        goOn(world, after: 7 * 24)
        #expect(world.run(ask) == .rejected(.resultsGone))
        #expect(world.state.requests.values.allSatisfy { !$0.isOpen && $0.mpids.isEmpty })
        #expect(try status(world).profileCount == 1)
    }

    /// S216.
    @Test func severalPeoplesDataGoToNobody() throws {
        let world = desk()
        for number in 1...2 { _ = try person(Int64(number), Identity(.email, "family@x"), in: world) }
        try file(filing(.access, ["email": "family@x"]), in: world)
        goOn(world)
        #expect(try status(world).reason == .ambiguousIdentity)
        #expect(
            world.run(.getRequestResults(GetRequestResults(requestId: Self.id))) == .rejected(.resultsNotReady))
    }

    // MARK: The store

    /// A request goes on by itself, on both engines: what is loaded is what the rules need.
    @Test(arguments: SQLEngine.allCases) func itGoesOnByItself(_ engine: SQLEngine) throws {
        let store = try SyncTestStore(engine)
        let world = desk()
        let service = SyncService(aliasDelay: .seconds(1))
        func run(_ command: SyncCommand) throws -> SyncDecider.Decision {
            world.count += 1
            world.now += 1000
            return try store.run([.init(command: command, context: world.context)])[0]
        }
        let login = SyncRequest(deviceId: "d", knownIdentities: ["customerid": "anna", "email": "a@x"])
        guard case .sync(let anna) = Answer(try run(.move(.login, login)).outcome) else { throw Unexpected() }
        _ = try run(.fileRequest(filing()))
        func due() throws -> [DueCommand] {
            try store.database.transaction {
                try service.due(now: Timestamp(milliseconds: world.now), limit: 10, apps: AppDirectory([]), in: $0)
            }
        }
        #expect(try due().isEmpty)
        world.now += 73 * Self.hour
        let first = try due()
        #expect(first.compactMap { $0.command as? ProcessRequest }.map(\.requestId) == [Self.id])
        #expect(try due().isEmpty, "asked a moment ago")
        let began = try run(.processRequest(ProcessRequest(requestId: Self.id)))
        #expect(began.events.contains { ($0 as? ProfileErased)?.mpid == anna.mpid })
        for forward in began.forwards {
            _ = try run(.answered(ForwardAnswer(forwardID: forward.id, isPending: false, part: .part())))
        }
        world.now += Self.hour
        #expect(try due().count == 1)
        _ = try run(.processRequest(ProcessRequest(requestId: Self.id)))
        let told = try run(.getRequest(GetRequest(requestId: Self.id)))
        guard case .succeeded(let status as SubjectRequestResult) = told.outcome else { throw Unexpected() }
        #expect(status.status == .completed && status.certificates?.first?.completedAt != nil)
    }
}
