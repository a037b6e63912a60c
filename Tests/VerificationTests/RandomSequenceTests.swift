// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime
@testable import Verification

/// Random sequences: what the events tell is a story that makes sense, and agrees with the session that is kept.
@Suite struct RandomSequenceTests {
    /// What somebody knows of a device who reads nothing but the session-changed events.
    struct Reader: Equatable {
        var state: VerificationState = .anonymous
        var mayFileIssues = true
        var user: MPID?
        var isKnown = false

        /// - Returns: what is wrong with the event, after all that was told before.
        mutating func read(_ event: SessionChanged) -> String? {
            // Of a device whose user was erased nothing is known.
            var isErased = false
            defer { (state, mayFileIssues, isKnown) = (event.state, event.mayFileIssues, !isErased) }
            switch event.cause {
            case .login where event.state == .anonymous:
                return user.map { "an anonymous login while \($0) is there" }
            case .login:
                defer { user = event.mpid }
                guard let comer = event.mpid else { return "a login of nobody" }
                if let user, user != comer { return "the login of \(comer) before the logout of \(user)" }
                if user == event.mpid, state == event.state, mayFileIssues == event.mayFileIssues {
                    return "the same login twice"
                }
                return nil
            case .logout:
                defer { user = nil }
                if event.mpid != user { return "the logout of another than who is there" }
                return user == nil && state == .anonymous && isKnown ? "a logout while nobody is there" : nil
            case .refusal:
                return event.state == .unverified && !event.mayFileIssues ? nil : "a refusal that refuses nothing"
            case .ended where event.reason == .erased:
                defer { user = nil }
                isErased = true
                return event.mpid == user && user != nil ? nil : "nobody was erased"
            case .ended:
                if event.mpid != user { return "the end of another's session" }
                return event.state == .unverified && event.state != state || event.mayFileIssues != mayFileIssues
                    ? nil : "an end that ends nothing"
            }
        }
    }

    @Test func eventsTellTheStory() throws {
        var outcomes: [String: Int] = [:]
        for round in 0..<60 {
            var source = RandomCommands(seed: testSeed &+ UInt64(round))
            var state = SessionState()
            var readers: [Session.Key: Reader] = [:]
            var settled: [CommandKey: Int] = [:]
            var promised: Set<CommandKey> = []
            for place in 0..<200 {
                let step = source.next()
                let trace = Comment(rawValue: "seed \(testSeed), round \(round), step \(place): \(step.command)")
                let decision = VerificationDecider(state, step.context).decide(step.command)
                let again = VerificationDecider(state, step.context).decide(step.command)
                #expect(decision.told == again.told && decision.changes == again.changes, trace)
                source.note(decision, app: step.context.app.id)
                decision.changes.forEach { state.apply($0) }
                for case let event as SessionChanged in decision.events {
                    let key = Session.Key(app: step.context.app.id, id: event.deviceId)
                    let problem = readers[key, default: Reader()].read(event)
                    try #require(problem == nil, trace)
                }
                // Refusals and logouts show at once; only what the sync service said moves a user in.
                if case .pending = decision.outcome {
                    promised.insert(step.context.command)
                    // Forgotten and sent again, it is answered again.
                    settled[step.context.command] = nil
                }
                for settlement in decision.settlements { settled[settlement.command, default: 0] += 1 }
                for (key, session) in state.sessions.rows {
                    let told = try #require(readers[key] ?? (session.shown == 0 ? Reader() : nil), trace)
                    try #require(told.state == session.state, trace)
                    try #require(told.mayFileIssues == session.mayFileIssues, trace)
                    try #require(told.user == session.mpid, trace)
                    try #require(session.shown <= session.number, trace)
                }
                outcomes[decision.answer.split(separator: " ").prefix(2).joined(separator: " "), default: 0] += 1
            }
            #expect(settled.values.allSatisfy { $0 == 1 })
            #expect(Set(settled.keys).isSubset(of: promised))
            #expect(state.sagas.count == promised.count - settled.count)
        }
        for outcome in ["pending", "noted", "rejected InvalidAuthToken", "anonymous noIdentifier", "removed 1"] {
            #expect((outcomes[outcome] ?? 0) > 10, "\(outcomes)")
        }
    }

    /// However commands are grouped into batches, and whichever replica's counters they add to, the answers and the
    /// tables are the same.
    @Test(arguments: SQLEngine.allCases) func batchesOfAnySizeEqualOneByOne(_ engine: SQLEngine) throws {
        for round in 0..<(engine == .sqlite ? 10 : 4) {
            let seed = testSeed &+ UInt64(round)
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

    @Test(arguments: SQLEngine.allCases) func rowsComeBackAsTheyWereSaved(_ engine: SQLEngine) throws {
        let store = try VerificationTestStore(engine)
        let sessions = [
            Session(
                app: "a'b", deviceID: "\u{e9}'\"\\ \u{1F44B}", state: .unverified, mayFileIssues: false,
                mpid: MPID(Int64.min), standing: Standing(.unverified), number: 7, shown: 5, moved: 4, hasLogin: true),
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
                standing: Standing(.unknown, keyID: "k1", since: Fixture.now),
                userID: PersonDigest(of: "anna", .customerID, SyncSettings()),
                email: PersonDigest(of: "A@b.io", .email, SyncSettings())),
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
