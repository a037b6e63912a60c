// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Apps
@testable import Runtime
@testable import Sync
@testable import Verification

/// The two services as a deployment has them: commands, answers and events between them come in their order, each kind
/// after any time.
private struct TwoServices: RandomSource {
    private static let devices: [DeviceID] = ["d1", "d2"]
    private static let people = ["anna", "berta"]

    var random: SplitMix64
    let app: AppSettings
    private var sync = SyncState()
    private var sessions = SessionState()
    private var now = Fixture.now.milliseconds
    private var count = 0
    /// To sync, to verification; what they say that the other reads.
    private var asked: [(id: CommandID, command: SyncCommand)] = []
    private var answers: [VerificationCommand] = []
    private var events: [VerificationCommand] = []
    private var last: [DeviceID: DeviceMove] = [:]
    private(set) var reached: Set<String> = []

    init(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let strategy = SyncStrategy.all[Int(seed % UInt64(SyncStrategy.all.count))]
        // Best match knows nobody, so there is nobody to verify.
        let mode: VerificationSettings.Mode =
            strategy == .bestMatch ? .off : VerificationSettings.Mode.allCases.randomElement(using: &random) ?? .off
        app = AppSettings(
            id: "support", sync: SyncSettings.defaults(of: strategy), verification: Fixture.settings(mode, .userId))
        self.random = random
    }

    mutating func step() {
        if chance(60) { now += Int64.random(in: 1...2000, using: &random) }
        switch Int.random(in: 0..<12, using: &random) {
        case 0...2: decide(ofSync: syncCommand(), nextID(), principal())
        case 3...5: decide(ofVerification: verificationCommand(), nextID())
        case 6, 7: if !asked.isEmpty { takeAsked() }
        case 8, 9: if !answers.isEmpty { takeAnswer() }
        default: if !events.isEmpty { takeEvent() }
        }
    }

    /// Until nothing is under way.
    mutating func settle() {
        while !asked.isEmpty || !answers.isEmpty || !events.isEmpty {
            switch Int.random(in: 0..<3, using: &random) {
            case 0: if !asked.isEmpty { takeAsked() }
            case 1: if !answers.isEmpty { takeAnswer() }
            default: if !events.isEmpty { takeEvent() }
            }
        }
    }

    mutating func check(_ trace: Comment) throws {
        for device in Self.devices {
            let users = SyncDecider(sync, context("users", .service), aliasDelay: 0).decide(
                .getUsers(GetDeviceUsers(deviceId: device)))
            let session = VerificationDecider(sessions, context("session", .service)).decide(
                .getSession(GetSession(deviceId: device)))
            guard case .succeeded(let found as DeviceUsersResult) = users.outcome,
                case .succeeded(let shown as SessionResult) = session.outcome
            else { throw Disagreement() }
            let current = found.users.first { $0.isCurrent }
            let told = last[device].flatMap { $0.user == .erased ? nil : $0 }
            try #require(current?.mpid == told?.mpid, trace)
            try #require((current?.isLoggedIn ?? false) == (told?.user == .known), trace)
            if let mpid = shown.mpid { try #require(current?.mpid == mpid && current?.isLoggedIn == true, trace) }
            let isRefusal = shown.state == .unverified && !shown.mayFileIssues
            try #require(shown.state == .anonymous || isRefusal || shown.mpid != nil, trace)
        }
    }

    struct Disagreement: Error {}

    // MARK: What is sent from outside

    private mutating func nextID() -> CommandID {
        count += 1
        return CommandID("c\(count)")
    }

    private mutating func principal() -> Principal {
        Principal(kind: .apiKey("k"), scopes: chance(60) ? [.identitySync, .identityVouch] : [.identitySync])
    }

    private mutating func syncCommand() -> SyncCommand {
        if chance(10), let mpid = sync.profiles.values.map(\.mpid).sorted().randomElement(using: &random) {
            let change = ModifyIdentities.Change(
                identityType: "customerid", oldValue: nil, newValue: chance(40) ? pick(Self.people) : nil)
            return chance(25)
                ? .erase(EraseProfile(mpid: mpid)) : .modify(ModifyIdentities(mpid: mpid, changes: [change]))
        }
        var identities: [String: String?] = [:]
        if chance(80) { identities["device_application_stamp"] = pick(["s1", "s2"]) }
        if chance(40) { identities["customerid"] = pick(Self.people) }
        let operation: SyncCommand.Operation = pick([.identify, .login, .logout])
        return .move(operation, SyncRequest(deviceId: pick(Self.devices), knownIdentities: identities))
    }

    private mutating func verificationCommand() -> VerificationCommand {
        let device = pick(Self.devices)
        let person = pick(Self.people)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .logout(VerificationLogout(deviceId: device))
        case 1: return .login(VerificationLogin(deviceId: device))
        case 2: return .login(VerificationLogin(deviceId: device, userId: person, userAuthToken: "x"))
        default:
            return .login(VerificationLogin(deviceId: device, userId: person, userAuthToken: Fixture.token(person)))
        }
    }

    // MARK: What they do

    private func context(_ id: CommandID, _ kind: Principal.Kind) -> DecisionContext {
        DecisionContext(
            command: CommandKey(app: app.id, source: "test", id: id), app: app,
            principal: Principal(kind: kind, scopes: Set(Scope.allCases)), now: Timestamp(milliseconds: now))
    }

    private mutating func decide(
        ofSync command: SyncCommand, _ id: CommandID, _ principal: Principal, answered: Bool = false
    ) {
        var context = context(id, .service)
        context.principal = principal
        let decision = SyncDecider(sync, context, aliasDelay: 0).decide(command)
        decision.changes.forEach { sync.apply($0) }
        for event in decision.events {
            if let event = event as? CurrentUserChanged { tell(event.deviceId, DeviceMove(event)) }
            if let event = event as? CurrentUserErased { tell(event.deviceId, DeviceMove(event)) }
        }
        for case let forget as ForgetSessions in decision.forwards.map(\.command) { answers.append(.forget(forget)) }
        guard answered else { return }
        switch decision.outcome {
        case .succeeded(let result as SyncResult):
            let found = SyncAnswer.Found(result.mpid, isKnown: result.isLoggedIn, move: result.move)
            answers.append(.synced(SyncAnswer(forward: id, outcome: .found(found))))
        case .rejected(let rejection):
            answers.append(.synced(SyncAnswer(forward: id, outcome: .rejected(rejection))))
        default: break
        }
    }

    private mutating func tell(_ device: DeviceID, _ move: DeviceMove) {
        last[device] = move
        events.append(.moved(device, move))
    }

    private mutating func decide(ofVerification command: VerificationCommand, _ id: CommandID) {
        let decision = VerificationDecider(sessions, context(id, .service)).decide(command)
        decision.changes.forEach { sessions.apply($0) }
        for forward in decision.forwards {
            switch forward.command {
            case let login as LogInUser: asked.append((forward.id, .move(.login, login.request)))
            case let logout as LogOutUser: asked.append((forward.id, .move(.logout, logout.request)))
            case let identify as IdentifyUser: asked.append((forward.id, .move(.identify, identify.request)))
            default: break
            }
        }
        for case let event as SessionChanged in decision.events {
            reached.insert(event.reason?.rawValue ?? event.state.rawValue)
        }
    }

    private mutating func takeAsked() {
        let (id, command) = asked.removeFirst()
        decide(ofSync: command, id, Principal(kind: .service, scopes: []), answered: true)
    }

    private mutating func takeAnswer() { decide(ofVerification: answers.removeFirst(), nextID()) }

    private mutating func takeEvent() { decide(ofVerification: events.removeFirst(), nextID()) }
}

@Suite struct AgreementTests {
    /// S86, V71 to V76.
    @Test func theServicesAgreeWheneverNothingIsUnderWay() throws {
        var reached: Set<String> = []
        for number in 0..<600 {
            var services = TwoServices(seed: testSeed &+ UInt64(number))
            for place in 0..<15 {
                for _ in 0..<15 { services.step() }
                services.settle()
                try services.check("seed \(testSeed), sequence \(number), place \(place)")
            }
            reached.formUnion(services.reached)
        }
        // A test that never reaches an end proves nothing about it.
        #expect(reached.isSuperset(of: ["userChanged", "erased", "verified", "unverified", "unchecked", "anonymous"]))
    }
}
