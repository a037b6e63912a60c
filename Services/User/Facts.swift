// SPDX-License-Identifier: Apache-2.0

public import Apps
public import Contracts
public import Runtime
public import Storage
import WireJSON

/// What is known of an install, a user or an external id. U94.
extension UserService {
    public static func question(_ command: UserCommand) -> FactsQuery? {
        if case .facts(let query) = command { query } else { nil }
    }

    /// Of codes only how many there are.
    public func facts(
        about id: String, of app: AppSettings, in transaction: any SQLTransaction
    ) throws -> FactsSubject {
        let store = UserStore(transaction: transaction)
        var subject = FactsSubject()
        let installs =
            try store.installs([InstallKey(app: app.id, id: InstallID(id))]) + store.installs(of: [UserID(id)])
        for install in installs where install.app == app.id {
            subject.add(
                "install",
                [
                    "installId": .string(install.id.text), "phase": .string(install.phase.rawValue),
                    "userId": install.facts.userID.map { .string($0.text) },
                ], install.lastDecision)
        }
        let codes = try store.codes(of: [Scoped(app: app.id, id: ExternalID(id))])
        if !codes.isEmpty {
            subject.add(
                "codes",
                [
                    "externalId": .string(id), "count": .number(JSONNumber(Int64(codes.count))),
                    "unused": .number(JSONNumber(Int64(codes.count { $0.use == .none }))),
                ])
        }
        if try !store.erased(among: [UserID(id)]).isEmpty {
            subject.add("user", ["userId": .string(id), "isErased": true])
        }
        return subject
    }
}
