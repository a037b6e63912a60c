// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
public import Runtime
import Storage

/// The sessions and sagas that a batch touches, and what it counts.
public struct SessionState: ServiceState, Sendable {
    public enum Change: Sendable, Hashable {
        case session(Session)
        case began(LoginSaga)
        case ended(LoginSaga)
        case counted(app: String, Tally, at: Timestamp)
    }

    struct DeviceKey: Hashable, Comparable, Sendable {
        var app: ExactText
        var deviceID: ExactText

        init(app: String, deviceID: String) {
            self.app = ExactText(app)
            self.deviceID = ExactText(deviceID)
        }

        static func < (left: DeviceKey, right: DeviceKey) -> Bool {
            (left.app, left.deviceID) < (right.app, right.deviceID)
        }
    }

    private(set) var sessions: [DeviceKey: Session] = [:]
    private(set) var sagas: [ExactText: LoginSaga] = [:]
    /// By app: what stands in the database, where a command of the batch asks for it.
    private var totals: [ExactText: [Tally: Count]] = [:]

    /// What `save` has to write.
    private(set) var changedSessions: Set<DeviceKey> = []
    private(set) var begunSagas: Set<ExactText> = []
    private(set) var endedSagas: Set<ExactText> = []
    private(set) var counted: [ExactText: [Tally: Count]] = [:]

    public init(sessions: [Session] = [], sagas: [LoginSaga] = []) {
        load(sessions)
        load(sagas)
    }

    func session(app: String, deviceID: String) -> Session? { sessions[DeviceKey(app: app, deviceID: deviceID)] }

    func saga(app: String, forwardID: String) -> LoginSaga? {
        sagas[ExactText(forwardID)].flatMap { ExactText($0.command.app) == ExactText(app) ? $0 : nil }
    }

    /// The app's counts, those of the batch so far included.
    func usage(app: String) -> [Tally: Count] {
        (totals[ExactText(app)] ?? [:]).merging(counted[ExactText(app)] ?? [:], uniquingKeysWith: +)
    }

    // Adding rows as they stand in the database.

    mutating func load(_ rows: [Session]) {
        for session in rows { sessions[DeviceKey(app: session.app, deviceID: session.deviceID)] = session }
    }

    mutating func load(_ rows: [LoginSaga]) {
        for saga in rows { sagas[ExactText(saga.forwardID)] = saga }
    }

    mutating func load(_ counts: [Tally: Count], app: ExactText) { totals[app] = counts }

    public mutating func apply(_ change: Change) {
        switch change {
        case .session(let session):
            load([session])
            changedSessions.insert(DeviceKey(app: session.app, deviceID: session.deviceID))
        case .began(let saga):
            load([saga])
            begunSagas.insert(ExactText(saga.forwardID))
        case .ended(let saga):
            sagas[ExactText(saga.forwardID)] = nil
            endedSagas.insert(ExactText(saga.forwardID))
        case .counted(let app, let tally, let now):
            let one = Count(count: 1, lastUsed: now)
            counted[ExactText(app), default: [:]].merge([tally: one], uniquingKeysWith: +)
        }
    }
}
