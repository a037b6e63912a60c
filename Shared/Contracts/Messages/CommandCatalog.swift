// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// Every command type there is, for tools that send commands without being one of the services.
public enum CommandCatalog {
    public struct Entry: Sendable {
        public var type: String
        public var scope: Scope
        let subject: @Sendable (JSONValue) throws -> String
    }

    public static let entries: [Entry] = [
        entry(LinkRequest.self), entry(RegisterInstall.self), entry(EstablishLink.self), entry(QueryInstall.self),
        entry(DetachInstall.self), entry(SetInstallStatus.self), entry(EraseUser.self),
        entry(ForgetPerson.self),
        entry(RequestAuthCode.self), entry(CreateUser.self), entry(LinkUser.self), entry(ConfirmLink.self),
        entry(ResetUser.self), entry(GetUser.self), entry(ExpireLinker.self), entry(ForgetUser.self),
        entry(IdentifyUser.self), entry(LogInUser.self), entry(LogOutUser.self), entry(SearchUser.self),
        entry(ModifyIdentities.self), entry(AliasUsers.self), entry(ApplyAlias.self), entry(GetDeviceUsers.self),
        entry(EraseProfile.self), entry(ForgetProfiles.self),
        entry(VerificationLogin.self), entry(VerificationLoginIdentity.self), entry(VerificationLogout.self),
        entry(VerificationCheck.self), entry(VerificationUsage.self), entry(ForgetSessions.self),
        entry(GetSession.self), entry(ReviewSession.self),
    ]

    /// The full type of `link.request` is `identity.link.request.v1`; a full one is returned as it is.
    public static func fullType(_ name: String) -> String {
        name.hasPrefix("identity.") ? name : "identity.\(name).v1"
    }

    /// The service that consumes a type: its second part. `nil` when the type does not have the form.
    public static func service(of type: String) -> String? {
        let parts = type.split(separator: ".")
        return parts.count >= 4 && parts[0] == "identity" ? String(parts[1]) : nil
    }

    /// The second half of the Kafka key of a command with this data; `nil` when the type is unknown or the data is not
    /// what the type needs.
    public static func partitionSubject(type: String, data: JSONValue) -> String? {
        entries.first { $0.type == type }.flatMap { try? $0.subject(data) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    private static func entry<Message: CommandMessage>(_: Message.Type) -> Entry {
        Entry(type: Message.type, scope: Message.scope) {
            try WireJSONDecoder().decode(Message.self, from: $0).partitionSubject
        }
    }
}
