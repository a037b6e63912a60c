// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Runtime
import Storage

/// The sessions and sagas that a batch touches, and what it counts.
public struct SessionState: ServiceState, Sendable {
    public enum Change: Sendable, Hashable {
        case session(Session)
        /// Its user was erased.
        case removed(Session)
        case began(LoginSaga)
        case ended(LoginSaga)
        /// These users are erased: no answer that is still on its way brings one back.
        case erased(app: String, [MPID])
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

    struct PersonKey: Hashable, Comparable, Sendable {
        var app: ExactText
        var mpid: MPID

        init(app: String, mpid: MPID) {
            self.app = ExactText(app)
            self.mpid = mpid
        }

        static func < (left: PersonKey, right: PersonKey) -> Bool { (left.app, left.mpid) < (right.app, right.mpid) }
    }

    private(set) var sessions: [DeviceKey: Session] = [:]
    private(set) var sagas: [ExactText: LoginSaga] = [:]
    private(set) var erased: Set<PersonKey> = []
    /// By app: what stands in the database, where a command of the batch asks for it.
    private var totals: [ExactText: [Tally: Count]] = [:]

    /// What `save` has to write.
    private(set) var changedSessions: Set<DeviceKey> = []
    private(set) var begunSagas: Set<ExactText> = []
    private(set) var endedSagas: Set<ExactText> = []
    /// Users that have come to a session or were erased: what keeps a login and an erasure in two replicas apart.
    private(set) var changedPeople: Set<PersonKey> = []
    private(set) var counted: [ExactText: [Tally: Count]] = [:]

    public init(sessions: [Session] = [], sagas: [LoginSaga] = []) {
        load(sessions)
        load(sagas)
    }

    func session(app: String, deviceID: String) -> Session? { sessions[DeviceKey(app: app, deviceID: deviceID)] }

    /// The app's sessions of these users, in the order of their devices.
    func sessions(app: String, of mpids: Set<MPID>) -> [Session] {
        sessions.filter { key, session in
            key.app == ExactText(app) && session.mpid.map(mpids.contains) == true
        }.sorted { $0.key < $1.key }.map(\.value)
    }

    func saga(app: String, forwardID: String) -> LoginSaga? {
        sagas[ExactText(forwardID)].flatMap { ExactText($0.command.app) == ExactText(app) ? $0 : nil }
    }

    /// The app's sagas for which this is so, in the order of their forwards.
    func sagas(app: String, where isWanted: (LoginSaga) -> Bool) -> [LoginSaga] {
        sagas.filter { ExactText($0.value.command.app) == ExactText(app) && isWanted($0.value) }
            .sorted { $0.key < $1.key }.map(\.value)
    }

    func isErased(app: String, _ mpid: MPID) -> Bool { erased.contains(PersonKey(app: app, mpid: mpid)) }

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

    mutating func load(erased people: [PersonKey]) { erased.formUnion(people) }

    public mutating func apply(_ change: Change) {
        switch change {
        case .session(let session):
            let key = DeviceKey(app: session.app, deviceID: session.deviceID)
            if let mpid = session.mpid, sessions[key]?.mpid != mpid {
                changedPeople.insert(PersonKey(app: session.app, mpid: mpid))
            }
            load([session])
            changedSessions.insert(key)
        case .removed(let session):
            let key = DeviceKey(app: session.app, deviceID: session.deviceID)
            sessions[key] = nil
            changedSessions.insert(key)
        case .began(let saga):
            load([saga])
            begunSagas.insert(ExactText(saga.forwardID))
        case .ended(let saga):
            sagas[ExactText(saga.forwardID)] = nil
            endedSagas.insert(ExactText(saga.forwardID))
        case .erased(let app, let mpids):
            let people = mpids.map { PersonKey(app: app, mpid: $0) }
            erased.formUnion(people)
            changedPeople.formUnion(people)
        case .counted(let app, let tally, let now):
            let one = Count(count: 1, lastUsed: now)
            counted[ExactText(app), default: [:]].merge([tally: one], uniquingKeysWith: +)
        }
    }
}
