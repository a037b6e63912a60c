// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import WireJSON

extension Endpoint {
    /// Every endpoint of the admin port. A new one is a value here, an operation in docs/openapi-admin.json (then
    /// `scripts/generate`) and a word in docs/gateway.md.
    ///
    /// What people are called by stands in bodies: paths and queries are written into logs on the way. Ids that the
    /// platform made stand in paths.
    static let admin: [Endpoint] =
        reads + repairs + erasure + profileAPI + [
            Endpoint("GET", "/admin/v1/key", .own, by: .backend, .reading(.key)),
            Endpoint("GET", "/admin/v1/status", .own, by: .backend, .reading(.status)),
            Endpoint("GET", "/admin/v1/dead-letters", .own, by: .backend, .reading(.deadLetters)),
            Endpoint("GET", "/openapi.json", .own, by: .anybody, .document),
        ]

    /// The console's files: on the admin port where there is one.
    static let console = [
        Endpoint("GET", "/console", .own, by: .anybody, .console),
        Endpoint("GET", "/console/{file:plain}", .own, by: .anybody, .console),
    ]

    private static let reads = [
        Endpoint(
            "GET", "/admin/v1/users/{user_id}", .own, by: .backend, parameters: [.after],
            { GetLinkedUser(userId: UserID($0.id), after: $0.query[.after]) }),
        Endpoint(
            "POST", "/admin/v1/users/resolve", .own, by: .backend, parameters: [], GetLinkedUser.self,
            data: OwnCalls.members("userId", "externalId", "installId", "after")),
        Endpoint(
            "GET", "/admin/v1/profiles/{mpid}", .own, by: .backend, parameters: [.after],
            { content throws(APIFailure) in
                GetProfile(mpid: try ProfileCalls.mpid(content.id), after: content.query[.after])
            }),
        Endpoint(
            "POST", "/admin/v1/profiles/resolve", .own, by: .backend, parameters: [], GetProfile.self,
            data: OwnCalls.members("mpid", "identity", "after")),
        Endpoint(
            "GET", "/admin/v1/sessions/{device_id}", .own, by: .backend, parameters: [],
            { GetSession(deviceId: DeviceID($0.id)) }),
        facts("GET", "/admin/v1/facts/{id}", parameters: [.source, .after], FactsCalls.named),
        facts("POST", "/admin/v1/facts/resolve", parameters: [], OwnCalls.members("id", "source", "after")),
        facts("POST", "/admin/v1/people/resolve", parameters: [], OwnCalls.members(PeopleCalls.members), goesOn: true),
    ]

    /// A question to all services.
    private static func facts(
        _ method: String, _ path: String, parameters: Set<Query.Parameter>,
        _ read: @escaping @Sendable (RequestContent) -> JSONValue, goesOn: Bool = false
    ) -> Endpoint {
        Endpoint(
            method, path, .own, by: .backend,
            .command(
                Command(
                    type: FactsCalls.types[0], others: [], pending: .isAwaited, parameters: parameters, read: read,
                    answer: OwnCalls.answer, progress: { _ in nil }, asksAll: true, goesOn: goesOn)))
    }

    /// One line for each.
    private static let repairs = [
        repair(MakeInstallActive.self),
        repair(UnlinkUser.self),
        repair(ChangeExternalID.self),
        repair(DetachIdentities.self),
        repair(AllowMerge.self),
        repair(RestrictProfile.self),
        // For operators: not everybody who helps users may lock a device out.
        repair(SetInstallStatus.self),
    ]

    /// `identity.link.make-active.v1` is `POST /admin/v1/link/make-active`. The service gets the whole body, and refuses what
    /// is misspelt.
    private static func repair<Command: CommandByHand>(_: Command.Type) -> Endpoint {
        let words = Command.type.split(separator: ".")
        return Endpoint(
            "POST", "/admin/v1/\(words[1])/\(words[2])", .own, by: .backend, parameters: [.dryRun],
            Command.self, data: { .object($0.body) }, answer: OwnCalls.answerOrTrial)
    }

    /// Of whoever has the scope for it: a person goes from all services, with somebody's name and reason. Apps' backends have
    /// the same on their port.
    private static let erasure = [
        Endpoint(
            "POST", "/admin/v1/link/erase-user", .own, by: .backend, with: ["user", "sync", "verification"],
            pending: .goesOn, parameters: [.dryRun], EraseUser.self,
            data: OwnCalls.exactly("userId", "author", "reason"), answer: OwnCalls.answerOrTrial,
            progress: OwnCalls.erasure),
        Endpoint(
            "GET", "/admin/v1/users/{user_id}/erasure", .own, by: .backend, parameters: [],
            { GetUserErasure(userId: UserID($0.id)) }, answer: LinkingCalls.erased, progress: OwnCalls.erasure),
    ]

    /// The identity vendor's calls to read profiles (F45).
    private static let profileAPI = [
        Endpoint(
            "GET", "/userprofile/v1/{org_id}/{account_id}/{workspace_id}/{mpid}", .own, by: .backend,
            parameters: [.fields],
            { content throws(APIFailure) in
                try ProfileCalls.check(content.query)
                return GetProfile(mpid: try ProfileCalls.mpid(content.id))
            }, answer: ProfileCalls.profile),
        Endpoint(
            "POST", "/userprofile/v1/resolve/{org_id}/{account_id}/{workspace_id}", .own, by: .backend,
            parameters: [.fields], GetProfile.self, data: ProfileCalls.named, answer: ProfileCalls.profile),
    ]
}
