// SPDX-License-Identifier: Apache-2.0

import Testing
import WireJSON

@testable import Contracts

private func mpid(_ value: Int64) -> MPID {
    guard let mpid = MPID(value) else { preconditionFailure("0 is no MPID") }
    return mpid
}

extension GoldenTests {
    static let erasureSamples: [Sample] = [
        message("command-sync-erase-profile-mpid", EraseProfile(mpid: mpid(-7))),
        message("command-sync-erase-profile-identity", EraseProfile(identity: Identity(.email, "a@b.io"))),
        message("command-sync-forget", ForgetProfiles(userId: "u1", externalId: "anna")),
        message("command-link-forget", ForgetPerson(userId: "u1")),
        message("command-user-forget", ForgetUser(userId: "u1", externalId: "anna", installIds: ["i1", "i2"])),
        message(
            "command-verification-forget",
            ForgetSessions(mpids: [mpid(-7), mpid(1)], userIds: ["anna"], emails: ["a@b.io"])),
        message("event-user-activated", UserActivated(installId: "i1", userId: "u1")),
        message("event-user-erased", UserForgotten(userId: "u1")),
        message("event-sync-profile-erased", ProfileErased(mpid: mpid(-7), cause: .erase)),
        message(
            "event-sync-current-user-erased", CurrentUserErased(deviceId: "d1", mpid: mpid(-7), cause: .forget)),
        message(
            "event-sync-value-too-common",
            ValueTooCommon(type: .iosIDFA, digest: String(repeating: "0a", count: 32), holders: 25, limit: 50)),
        reply(
            "reply-sync-erase-profile-succeeded",
            Reply(
                commandId: "c1", commandType: EraseProfile.type, status: .succeeded,
                result: ErasedProfilesResult(mpids: [mpid(-7)]))),
        reply(
            "reply-link-forget-succeeded",
            Reply(
                commandId: "c1", commandType: ForgetPerson.type, status: .succeeded,
                result: ForgottenPersonResult(userId: "u1"))),
        reply(
            "reply-user-forget-succeeded",
            Reply(
                commandId: "c1", commandType: ForgetUser.type, status: .succeeded,
                result: ForgottenUserResult(installsRemoved: 2))),
        reply(
            "reply-verification-forget-succeeded",
            Reply(
                commandId: "c1", commandType: ForgetSessions.type, status: .succeeded,
                result: ForgottenSessionsResult(sessionsRemoved: 2))),
    ]
}

extension ValidationTests {
    static let erasurePlaces: [Place] = [
        Place(name: "eraseProfile.identity", isIdentityValue: true) {
            EraseProfile(identity: Identity(.email, IdentityValue($0)))
        },
        Place(name: "syncForget.userId") { ForgetProfiles(userId: UserID($0)) },
        Place(name: "syncForget.externalId", isIdentityValue: true) { ForgetProfiles(externalId: ExternalID($0)) },
        Place(name: "linkForget.userId") { ForgetPerson(userId: UserID($0)) },
        Place(name: "linkForget.externalId", isIdentityValue: true) { ForgetPerson(externalId: ExternalID($0)) },
        Place(name: "userForget.userId") { ForgetUser(userId: UserID($0)) },
        Place(name: "userForget.externalId", isIdentityValue: true) {
            ForgetUser(userId: "u", externalId: ExternalID($0))
        },
        Place(name: "userForget.installIds") { ForgetUser(userId: "u", installIds: ["i", InstallID($0)]) },
        Place(name: "verificationForget.userIds", isIdentityValue: true) {
            ForgetSessions(mpids: [], userIds: [IdentityValue($0)], emails: [])
        },
        Place(name: "verificationForget.emails", isIdentityValue: true) {
            ForgetSessions(mpids: [], userIds: [], emails: [IdentityValue($0)])
        },
    ]
}

@Suite struct ErasureMessageTests {
    @Test(arguments: [
        "{}", #"{"mpid":"1","identity":{"type":"email","value":"a"}}"#, #"{"identity":{"type":"e-mail","value":"a"}}"#,
        #"{"identity":{"type":"email"}}"#, #"{"mpid":0}"#,
    ]) func aProfileIsNamedInOneWay(_ data: String) {
        #expect(throws: (any Error).self) {
            try WireJSONDecoder().decode(EraseProfile.self, from: Array(data.utf8)).validate()
        }
    }

    @Test func aPersonHasAName() {
        #expect(throws: Rejection.self) { try ForgetProfiles().validate() }
        #expect(throws: Rejection.self) { try ForgetPerson().validate() }
    }

    /// The scope is read in both spellings of the vendor.
    @Test func theScopeOfBackends() {
        #expect(Scope(spelling: "identity.vouch") == .identityVouch)
        #expect(Scope(spelling: "IDENTITY_VOUCH") == .identityVouch)
    }
}
