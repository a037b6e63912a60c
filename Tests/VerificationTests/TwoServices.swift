// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage

@testable import Apps
@testable import Runtime
@testable import Sync
@testable import Verification

/// The sync and the verification service of one app as a deployment has them: commands, answers and events between them
/// come in their order, each kind after any time. A value, so that a copy shows what a command would do.
struct TwoServices {
    struct Unanswered: Error {}

    static let source: SourceID = "test"
    /// What every copy of an app has.
    static let sdkKey = Principal(kind: .apiKey("sdk"), scopes: [.identitySync])
    static let backend = Principal(kind: .apiKey("backend"), scopes: [.identitySync, .identityVouch])
    private static let service = Principal(kind: .service, scopes: Set(Scope.allCases))

    let app: AppSettings
    var now = Fixture.now.milliseconds
    private(set) var sync = SyncState()
    private var sessions = SessionState()
    private var count = 0
    /// To sync, to verification; what sync says that verification reads.
    private(set) var asked: [(id: CommandID, command: SyncCommand)] = []
    private(set) var answers: [VerificationCommand] = []
    private(set) var events: [VerificationCommand] = []
    /// The last event of each device.
    private(set) var told: [DeviceID: DeviceMove] = [:]
    /// Reasons and states of the sessions that were told.
    private(set) var reached: Set<String> = []

    init(_ app: AppSettings) { self.app = app }

    // MARK: What is sent from outside

    @discardableResult
    mutating func send(_ command: SyncCommand, by principal: Principal) -> Outcome {
        decide(command, nextID(), principal)
    }

    @discardableResult
    mutating func send(_ command: VerificationCommand) -> Outcome { decide(command, nextID()) }

    /// Until nothing is under way.
    mutating func settle() {
        while isBusy {
            takeAsked()
            takeAnswer()
            takeEvent()
        }
    }

    var isBusy: Bool { !asked.isEmpty || !answers.isEmpty || !events.isEmpty }

    // MARK: What can be seen

    func users(_ device: DeviceID) throws -> [DeviceUsersResult.User] {
        let decision = SyncDecider(sync, context("users", Self.service), aliasDelay: 0)
            .decide(.getUsers(GetDeviceUsers(deviceId: device)))
        guard case .succeeded(let found as DeviceUsersResult) = decision.outcome else { throw Unanswered() }
        return found.users
    }

    func session(_ device: DeviceID) throws -> SessionResult {
        let decision = VerificationDecider(sessions, context("session", Self.service))
            .decide(.getSession(GetSession(deviceId: device)))
        guard case .succeeded(let session as SessionResult) = decision.outcome else { throw Unanswered() }
        return session
    }

    // MARK: What they do

    mutating func takeAsked() {
        guard !asked.isEmpty else { return }
        let (id, command) = asked.removeFirst()
        switch decide(command, id, Self.service) {
        case .succeeded(let result as SyncResult):
            let found = SyncAnswer.Found(result.mpid, isKnown: result.isLoggedIn, move: result.move)
            answers.append(.synced(SyncAnswer(forward: id, outcome: .found(found))))
        case .rejected(let rejection):
            answers.append(.synced(SyncAnswer(forward: id, outcome: .rejected(rejection))))
        default: break
        }
    }

    mutating func takeAnswer() {
        if !answers.isEmpty { decide(answers.removeFirst(), nextID()) }
    }

    mutating func takeEvent() {
        if !events.isEmpty { decide(events.removeFirst(), nextID()) }
    }

    private mutating func nextID() -> CommandID {
        count += 1
        return CommandID("c\(count)")
    }

    private func context(_ id: CommandID, _ principal: Principal) -> DecisionContext {
        DecisionContext(
            command: CommandKey(app: app.id, source: Self.source, id: id), app: app, principal: principal,
            now: Timestamp(milliseconds: now))
    }

    private mutating func decide(_ command: SyncCommand, _ id: CommandID, _ principal: Principal) -> Outcome {
        let decision = SyncDecider(sync, context(id, principal), aliasDelay: 0).decide(command)
        decision.changes.forEach { sync.apply($0) }
        for event in decision.events {
            if let event = event as? CurrentUserChanged { tell(event.deviceId, DeviceMove(event)) }
            if let event = event as? CurrentUserErased { tell(event.deviceId, DeviceMove(event)) }
        }
        for case let forget as ForgetSessions in decision.forwards.map(\.command) { answers.append(.forget(forget)) }
        return decision.outcome
    }

    private mutating func tell(_ device: DeviceID, _ move: DeviceMove) {
        told[device] = move
        events.append(.moved(device, move))
    }

    @discardableResult
    private mutating func decide(_ command: VerificationCommand, _ id: CommandID) -> Outcome {
        let decision = VerificationDecider(sessions, context(id, Self.service)).decide(command)
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
        return decision.outcome
    }
}
