// SPDX-License-Identifier: Apache-2.0

import Contracts
import Link
import Runtime
import Sync
import User
import Verification
import WireJSON

/// Input: JSON, tried as the data of every message; of an envelope its data.
enum MessagesTarget {
    static func run(_ bytes: [UInt8]) throws {
        guard let json = try? JSONView(parsing: bytes) else { return }
        let data = json.value["data"].map { JSONView($0) } ?? json
        for check in commands + others { try check(data) }
        guard let reply = ReceivedReply(data.value) else { return }
        for check in results { try check(reply) }
        try hold(!reply.rejection.message.isEmpty, "a refusal without a word")
    }

    private typealias Check = @Sendable (JSONView) throws -> Void

    private static let commands: [Check] = [
        command(LinkRequest.self), command(RegisterInstall.self), command(EstablishLink.self),
        command(QueryInstall.self), command(DetachInstall.self), command(SetInstallStatus.self),
        command(EraseUser.self), command(GetUserErasure.self), command(GetProfileErasure.self),
        command(ForgetPerson.self), command(RequestAuthCode.self), command(CreateUser.self),
        command(LinkUser.self), command(ConfirmLink.self), command(ResetUser.self), command(GetUser.self),
        command(ExpireLinker.self), command(ForgetUser.self), command(IdentifyUser.self), command(LogInUser.self),
        command(LogOutUser.self), command(SearchUser.self), command(ModifyIdentities.self), command(AliasUsers.self),
        command(ApplyAlias.self), command(GetDeviceUsers.self), command(EraseProfile.self),
        command(DetachIdentities.self), command(AllowMerge.self), command(RestrictProfile.self),
        command(ImportUsers.self), command(ImportProfiles.self),
        command(ForgetProfiles.self), command(KeepErased.self), command(VerificationLogin.self),
        command(VerificationLoginIdentity.self),
        command(VerificationLogout.self), command(VerificationCheck.self), command(VerificationUsage.self),
        command(GetSession.self), command(ReviewSession.self), command(ForgetSessions.self),
        command(ReadFacts<FactsOf.Link>.self), command(ReadFacts<FactsOf.User>.self),
        command(ReadFacts<FactsOf.Sync>.self), command(ReadFacts<FactsOf.Verification>.self),
    ]

    private static let others: [Check] = [
        event(InstallRegistered.self), event(Linked.self), event(LinkRefused.self), event(InstallDetached.self),
        event(InstallStatusChanged.self), event(UserErased.self), event(AuthCodeIssued.self), event(UserCreated.self),
        event(UserRestored.self), event(UserLinked.self), event(UserCreationFailed.self), event(UserDeactivated.self),
        event(UserActivated.self), event(UserForgotten.self), event(UserReset.self), event(ProfileCreated.self),
        event(CurrentUserChanged.self), event(IdentitiesChanged.self), event(ProfileOrphaned.self),
        event(Aliased.self), event(AliasDropped.self), event(ProfileErased.self), event(CurrentUserErased.self),
        event(ValueTooCommon.self), event(ProfileDetached.self), event(MergeBarred.self),
        event(MergeAllowed.self), event(RestrictionChanged.self), event(UserRestrictionChanged.self),
        event(LinkedUserChanged.self), event(ProfileJoined.self),
        event(VerificationVerified.self), event(VerificationFailed.self),
        event(UnverifiedObserved.self), event(SessionChanged.self), event(SessionsErased.self),
    ]

    private static let results: [@Sendable (ReceivedReply) throws -> Void] = [
        result(LinkResult.self), result(InstallResult.self), result(ErasureCertificate.self),
        result(AuthCodeResult.self),
        result(UserResult.self), result(ResetResult.self), result(PendingUser.self), result(SyncResult.self),
        result(AliasResult.self), result(DeviceUsersResult.self), result(IdentityHolders.self),
        result(DetachResult.self), result(AllowResult.self), result(ImportResult.self),
        result(VerificationResult.self), result(SessionResult.self), result(VerificationUsageResult.self),
    ]

    private static func command<Message: CommandMessage>(_: Message.Type) -> Check {
        { data in
            guard let message = try same(Message.self, data) else { return }
            do throws(Rejection) {
                try message.validate()
            } catch {
                return try hold(!error.message.isEmpty, "\(Message.type) is refused without a word")
            }
            // It becomes the subject and half of the key where the command is forwarded, and must be readable there.
            let subject = message.partitionSubject
            try hold(
                !subject.isEmpty && subject.utf8.count <= EnvelopeReader.maxSubjectBytes
                    && !subject.utf8.contains { $0 < 0x20 || $0 == 0x7F },
                "\(Message.type) is valid and has the key \(subject.debugDescription)")
        }
    }

    private static func event<Message: EventMessage>(_: Message.Type) -> Check {
        { data in
            guard let message = try same(Message.self, data) else { return }
            _ = message.subject
        }
    }

    private static func result<Result: CommandResult>(_: Result.Type) -> @Sendable (ReceivedReply) throws -> Void {
        { reply in
            guard let result = reply.result(as: Result.self) else { return }
            _ = try same(Result.self, JSONView(parsing: try WireJSONEncoder().encode(result)))
        }
    }

    /// What is written is read again as the same; what is refused has a reason, in one line.
    private static func same<Message: Codable & Equatable>(_: Message.Type, _ data: JSONView) throws -> Message? {
        let message: Message
        do {
            message = try WireJSONDecoder().decode(Message.self, from: data)
        } catch {
            let line = WireJSONError.explain(error)
            try hold(
                !line.hasControlCharacter && !line.isEmpty && line.count <= 400,
                "\(Message.self) is refused with: \(line)")
            return nil
        }
        let again: Message
        do {
            again = try WireJSONDecoder().decode(Message.self, from: try WireJSONEncoder().encode(message))
        } catch {
            throw Broken("\(Message.self) is not read again: \(WireJSONError.explain(error))")
        }
        try hold(again == message, "\(Message.self) is read again as another")
        return message
    }
}
