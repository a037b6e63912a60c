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
        case erased(app: AppID, [MPID])
        case counted(app: AppID, Tally, at: Timestamp)
    }

    private(set) var sessions = Table<Session>()
    private(set) var sagas = Table<LoginSaga>()
    private(set) var erased: Set<Scoped<MPID>> = []
    /// By app: what stands in the database, where a command of the batch asks for it.
    private var totals: [AppID: [Tally: Count]] = [:]

    /// Users that have come to a session or were erased: what keeps a login and an erasure in two replicas apart.
    private(set) var changedPeople: Set<Scoped<MPID>> = []
    private(set) var counted: [AppID: [Tally: Count]] = [:]

    public init(sessions: [Session] = [], sagas: [LoginSaga] = []) {
        load(sessions)
        load(sagas)
    }

    func session(app: AppID, deviceID: DeviceID) -> Session? { sessions[Session.Key(app: app, id: deviceID)] }

    /// The app's sessions of these users, in the order of their devices.
    func sessions(app: AppID, of mpids: Set<MPID>) -> [Session] {
        sessions.values.filter { session in
            session.key.app == app && session.mpid.map(mpids.contains) == true
        }.sorted { $0.key < $1.key }
    }

    func saga(app: AppID, forwardID: CommandID) -> LoginSaga? {
        sagas[forwardID].flatMap { $0.command.app == app ? $0 : nil }
    }

    /// The app's sagas for which this is so, in the order of their forwards.
    func sagas(app: AppID, where isWanted: (LoginSaga) -> Bool) -> [LoginSaga] {
        sagas.values.filter { $0.command.app == app && isWanted($0) }.sorted { $0.key < $1.key }
    }

    func isErased(app: AppID, _ mpid: MPID) -> Bool { erased.contains(Scoped(app: app, id: mpid)) }

    /// The app's counts, those of the batch so far included.
    func usage(app: AppID) -> [Tally: Count] {
        (totals[app] ?? [:]).merging(counted[app] ?? [:], uniquingKeysWith: +)
    }

    // Adding rows as they stand in the database.

    mutating func load(_ rows: [Session]) { rows.forEach { sessions.load($0) } }

    mutating func load(_ rows: [LoginSaga]) { rows.forEach { sagas.load($0) } }

    mutating func load(_ counts: [Tally: Count], app: AppID) { totals[app] = counts }

    mutating func load(erased people: [Scoped<MPID>]) { erased.formUnion(people) }

    public mutating func apply(_ change: Change) {
        switch change {
        case .session(let session):
            let previous = sessions.put(session)
            if let mpid = session.mpid, previous?.mpid != mpid {
                changedPeople.insert(Scoped(app: session.app, id: mpid))
            }
        case .removed(let session): sessions.remove(session.key)
        case .began(let saga): sagas.put(saga)
        case .ended(let saga): sagas.remove(saga.key)
        case .erased(let app, let mpids):
            let people = mpids.map { Scoped(app: app, id: $0) }
            erased.formUnion(people)
            changedPeople.formUnion(people)
        case .counted(let app, let tally, let now):
            let one = Count(count: 1, lastUsed: now)
            counted[app, default: [:]].merge([tally: one], uniquingKeysWith: +)
        }
    }
}
