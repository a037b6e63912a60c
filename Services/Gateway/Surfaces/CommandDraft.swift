// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import WireJSON

/// The command that a request stands for. The services check its data; here it is only named as they name it.
struct CommandDraft: Sendable, Equatable {
    /// Short: `link.request`.
    var name: String
    var data: JSONValue
    /// Whether "pending" is the answer to the request.
    var acceptsPending = false
    /// Whether the body asks for a dry run.
    var isDryRun = false

    var type: String { CommandCatalog.fullType(name) }
}

extension Route {
    /// - Parameter body: the request's JSON object; empty when there was no body.
    /// - Throws: when the request is not of the form that the endpoint takes.
    func command(_ body: JSONObject) throws(APIFailure) -> CommandDraft? {
        switch self {
        case .link(let installID):
            CommandDraft(
                name: "link.request",
                data: ["installId": .string(installID), "externalId": try LinkingSurface.externalID(body)])
        case .authCode:
            CommandDraft(
                name: "user.request-auth-code",
                data: ["externalId": try LinkingSurface.externalID(body)])
        case .eraseUser(let id): CommandDraft(name: "link.erase-user", data: ["userId": .string(id)])
        case .createUser: DeviceSurface.create(body)
        case .readInstall(let id): DeviceSurface.command("user.get", id)
        case .linkInstall(let id): DeviceSurface.link(body, id)
        case .confirmLink(let id): DeviceSurface.command("user.confirm-link", id, body.only("success"))
        case .resetInstall(let id): DeviceSurface.command("user.reset", id)
        case .sync(let call): try SyncSurface.command(call, body)
        case .modify(let mpid): try SyncSurface.modify(mpid: mpid, body)
        case .alias(let apiKey): try SyncSurface.alias(apiKey: apiKey, body)
        case .verification(let call): VerificationSurface.command(call, body)
        case .verificationSession(let id):
            CommandDraft(name: "verification.get-session", data: ["deviceId": .string(id)])
        case .events, .openAPI: nil
        }
    }

    /// The answer to a command that succeeded, or is pending where that is an answer.
    func response(_ reply: CommandReply, caller: Caller) -> APIResponse {
        let result = reply.result?.objectValue ?? [:]
        return switch self {
        case .link: ErrorFormat.json(200, ["id": result["userId"] ?? .null])
        case .authCode: ErrorFormat.json(200, LinkingSurface.authenticationCode(result))
        case .eraseUser: APIResponse(status: reply.status == .pending ? 202 : 200)
        case .sync(let call): SyncSurface.response(call, result, caller.app.gateway)
        case .modify: ErrorFormat.json(200, SyncSurface.modified(result))
        case .alias: APIResponse(status: 202)
        default: ErrorFormat.json(reply.status == .pending ? 202 : 200, .object(result))
        }
    }

    /// A service's words about its data, with the members named as this endpoint names them.
    func translated(_ message: String) -> String {
        let names: [(String, String)] =
            switch surface {
            case .linking: [("data.externalId", "external_id"), ("data.installId", "install_id")]
            case .sync, .alias: SyncSurface.memberNames
            case .own: [("data.", "")]
            }
        return names.reduce(message) { $0.replacing($1.0, with: $1.1) }
    }
}

extension JSONObject {
    /// The member, if it is there and as wanted.
    func member(_ name: String, where isWanted: (JSONValue) -> Bool) -> JSONValue? {
        guard let value = self[name], isWanted(value) else { return Optional.none }
        return value
    }

    /// These members, if they are there.
    func only(_ names: String...) -> JSONObject {
        JSONObject(names.compactMap { name in self[name].map { (name, $0) } })
    }
}
