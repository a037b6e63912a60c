// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime
@testable import Verification

/// Random sequences: what is answered, told, sent and kept is what a naive model says, and the events tell a story that
/// makes sense to somebody who reads nothing else.
@Suite struct RandomSequenceTests {
    @Test func serviceAndModelAgree() throws {
        var reached: [String: Int] = [:]
        try runSequences(80) { seed in
            var source = RandomCommands(seed: seed)
            var state = SessionState()
            var model = NaiveSessions()
            var readers: [Session.Key: SessionReader] = [:]
            for place in 0..<200 {
                let step = source.next()
                let app = step.context.app.id
                let trace = Comment(rawValue: "seed \(seed), step \(place): \(app) \(step.command)")
                let decision = VerificationDecider(state, step.context).decide(step.command)
                let again = VerificationDecider(state, step.context).decide(step.command)
                #expect(try decision.writtenOtherwise().isEmpty)
                #expect(decision.told == again.told && decision.changes == again.changes, trace)
                source.note(decision, app: app)
                decision.changes.forEach { state.apply($0) }
                let answer = model.run(step)
                try #require(try NaiveSessions.Answer(decision.outcome) == answer, trace)
                try #require(decision.events.map { AnyHashable($0) } == model.told.map { AnyHashable($0) }, trace)
                let settled = try decision.settlements.map { ($0.command, try NaiveSessions.Answer($0.outcome)) }
                try #require(settled.count == model.settled.count, trace)
                try #require(settled.allSatisfy { model.settled[$0.0] == $0.1 }, trace)
                let sent = decision.forwards.map { ($0.id, NaiveSessions.Sent($0)) }
                try #require(sent.count == model.sent.count, trace)
                try #require(sent.allSatisfy { model.sent[$0.0] == $0.1 }, trace)
                try same(state, model, trace)
                for case let event as SessionChanged in decision.events {
                    let problem = readers[Session.Key(app: app, id: event.deviceId), default: SessionReader()].read(
                        event)
                    try #require(problem == nil, trace)
                    reached[event.reason?.rawValue ?? event.cause.rawValue, default: 0] += 1
                }
                for answer in [answer] + model.settled.values { reached[Self.name(answer), default: 0] += 1 }
                for event in decision.events { reached[type(of: event).type, default: 0] += 1 }
            }
        }
        // A test that never reaches an answer proves nothing about it.
        let reasons: [ReasonCode] = [
            .authTokenNotProvided, .invalidAuthToken, .invalidIdentityToken, .identityFeatureNotEnabled,
            .identitiesDataInvalid, .uidOrEmailIsMandatory, .profileErased, .throttled,
        ]
        let events: [any EventMessage.Type] = [
            VerificationVerified.self, VerificationFailed.self, UnverifiedObserved.self, SessionsErased.self,
        ]
        let changes = [
            "login", "logout", "refusal", "keyGone", "verificationRequired", "sessionExpired", "erased", "userChanged",
            "detached",
        ]
        let states = ["anonymous", "verified", "unverified", "unchecked", "expired", "pending"]
        let names = reasons.map(\.rawValue) + events.map { $0.type } + changes + states
        #expect(names.filter { reached[$0, default: 0] < 10 } == [], "\(reached)")
    }

    private func same(_ state: SessionState, _ model: NaiveSessions, _ trace: Comment) throws {
        try #require(Set(state.sessions.rows.keys).isSuperset(of: model.devices.keys), trace)
        for (key, session) in state.sessions.rows {
            let device = model.devices[key] ?? NaiveSessions.Device()
            try #require(session.state == device.state, trace)
            try #require(session.mayFileIssues == device.mayFileIssues, trace)
            try #require(session.mpid == device.user, trace)
            try #require(session.hasLogin == device.hasLogin, trace)
            try #require(session.move == device.followed, trace)
            try #require(session.heard == device.news, trace)
        }
        try #require(Set(state.sagas.rows.keys) == Set(model.waiting.keys), trace)
    }

    private static func name(_ answer: NaiveSessions.Answer) -> String {
        switch answer {
        case .succeeded(let result): (result.base as? VerificationResult)?.state.rawValue ?? "another"
        case .rejected(let reason, _): reason.rawValue
        case .expired: "expired"
        case .pending: "pending"
        case .noted: "noted"
        }
    }

    /// However commands are grouped into batches, and whichever replica's counters they add to, the answers and the
    /// tables are the same.
    @Test(arguments: SQLEngine.allCases) func batchesOfAnySizeEqualOneByOne(_ engine: SQLEngine) throws {
        try runSequences(engine == .sqlite ? 10 : 4) { try compareBatches(engine, $0) }
    }

    /// A logout was answered with a known user, and a login that came after it was not asked for.
    @Test(arguments: SQLEngine.allCases, [5_347_450_535_889_177_934, 5_347_450_535_889_178_002] as [UInt64])
    func batchesThatFailedOnce(_ engine: SQLEngine, _ seed: UInt64) throws { try compareBatches(engine, seed) }

    private func compareBatches(_ engine: SQLEngine, _ seed: UInt64) throws {
        var source = RandomCommands(seed: seed)
        var sizes = SplitMix64(seed: seed)
        let single = try VerificationTestStore(engine)
        let batched = try VerificationTestStore(engine)
        var steps: [RandomCommands.Step] = []
        var expected: [VerificationDecider.Decision] = []
        for _ in 0..<80 {
            let step = source.next()
            let decision = try #require(try single.run([step]).first)
            source.note(decision, app: step.context.app.id)
            steps.append(step)
            expected.append(decision)
        }
        var decisions: [VerificationDecider.Decision] = []
        while !steps.isEmpty {
            let batch = Array(steps.prefix(Int.random(in: 1...20, using: &sizes)))
            steps.removeFirst(batch.count)
            decisions += try batched.run(batch, shard: Int64.random(in: 0..<3, using: &sizes))
        }
        #expect(decisions.map(\.answer) == expected.map(\.answer), "seed \(seed)")
        #expect(decisions.map(\.told) == expected.map(\.told), "seed \(seed)")
        #expect(try batched.rows() == single.rows(), "seed \(seed)")
    }

    /// The inbox has forgotten it, and it is on its way still.
    @Test(arguments: SQLEngine.allCases) func aForgottenLoginThatIsRepeatedIsNoConflict(_ engine: SQLEngine) throws {
        let store = try VerificationTestStore(engine)
        let login = VerificationCommand.login(
            VerificationLogin(deviceId: "d", userId: "anna", userAuthToken: Fixture.token("anna")))
        let step = RandomCommands.Step(command: login, context: Fixture.context(Fixture.settings()))
        for _ in 0..<2 { #expect(try store.run([step]).map(\.answer) == ["pending"]) }
        #expect(try store.count("login_sagas") == 1)
    }

    /// The clocks of producers and brokers differ, and a key that is in use must not look as if it were not (V52).
    @Test(arguments: SQLEngine.allCases) func lastUsedNeverGoesBack(_ engine: SQLEngine) throws {
        let store = try VerificationTestStore(engine)
        let login = VerificationCommand.login(
            VerificationLogin(deviceId: "d", userId: "anna", userAuthToken: Fixture.token("anna")))
        for minutes: Int64 in [0, 10, 5] {
            let now = Timestamp(milliseconds: Fixture.now.milliseconds + minutes * 60_000)
            let context = Fixture.context(Fixture.settings(), id: CommandID("c\(minutes)"), now: now)
            _ = try store.run([RandomCommands.Step(command: login, context: context)])
        }
        let usage = RandomCommands.Step(
            command: .usage(VerificationUsage()), context: Fixture.context(Fixture.settings()))
        let told = VerificationUsageResult.Count(
            method: .authToken, keyId: "k1", count: 3,
            lastUsed: Timestamp(milliseconds: Fixture.now.milliseconds + 600_000))
        #expect(
            try store.run([usage]).map { try NaiveSessions.Answer($0.outcome) } == [
                .succeeded(VerificationUsageResult(counts: [told]))
            ])
    }

    @Test(arguments: SQLEngine.allCases) func rowsComeBackAsTheyWereSaved(_ engine: SQLEngine) throws {
        let store = try VerificationTestStore(engine)
        let sessions = [
            Session(
                app: "a'b", deviceID: "\u{e9}'\"\\ \u{1F44B}", state: .unverified, mayFileIssues: false,
                mpid: MPID(Int64.min), standing: Standing(.unverified), number: 7, shown: 5, moved: 4, hasLogin: true,
                move: Int64.max, heard: DeviceMove(number: 9, mpid: .max, user: .erased, isDetached: true)),
            Session(
                app: "demo", deviceID: "d", state: .verified,
                standing: Standing(.key(mark: Fixture.k1.mark(.authToken)), keyID: "k'1", since: Fixture.now)),
            Session(
                app: "demo", deviceID: "e", state: .unchecked, standing: Standing(.unchecked, since: Fixture.now)),
        ]
        let sagas = [
            LoginSaga(
                forwardID: "f1", command: CommandKey(app: "demo", source: "s'", id: "i\""), deviceID: "d", kind: .login,
                number: 3, result: VerificationResult(state: .verified, mayFileIssues: true, keyId: "k1"),
                standing: Standing(.key(mark: Fixture.k1.mark(.authToken)), keyID: "k1", since: Fixture.now)),
            LoginSaga(
                forwardID: "f2", command: CommandKey(app: "demo", source: "s", id: "j"), deviceID: "d", kind: .logout,
                number: 4,
                result: VerificationResult(
                    state: .anonymous, mayFileIssues: true, anonymousReason: .userEmailInvalid)),
        ]
        var state = SessionState()
        sessions.forEach { state.apply(.session($0)) }
        sagas.forEach { state.apply(.began($0)) }
        let saved = state
        try store.database.transaction { try VerificationStore(transaction: $0).save(saved, shard: 0) }
        try store.database.transaction { (transaction) throws in
            let reader = VerificationStore(transaction: transaction)
            let keys = sessions.map { Session.Key(app: $0.app, id: $0.deviceID) }
            let others = [Session.Key(app: "demo", id: "no")]
            #expect(Set(try reader.sessions(Set(keys + others))) == Set(sessions))
            #expect(Set(try reader.sagas(forwardIDs: ["f1", "f2", "no"])) == Set(sagas))
        }
        var ended = SessionState(sagas: sagas)
        ended.apply(.ended(sagas[0]))
        let left = ended
        try store.database.transaction { try VerificationStore(transaction: $0).save(left, shard: 0) }
        try store.database.transaction { (transaction) throws in
            #expect(try VerificationStore(transaction: transaction).sagas(forwardIDs: ["f1", "f2"]) == [sagas[1]])
        }
    }
}
