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
        message(
            "command-sync-erase-profile-identities",
            EraseProfile(
                identities: ["email": "a@b.io", "customerid": "anna"], everyHolder: true, persons: .byCustomerId)),
        message(
            "command-sync-forget",
            ForgetProfiles(
                userId: "u1", externalId: "anna", erasedAt: Timestamp(milliseconds: 1_795_000_000_000))),
        message(
            "command-sync-keep-erased",
            KeepErased(mpid: mpid(-7), erasedAt: Timestamp(milliseconds: 1_795_000_000_000), whom: "00ff")),
        message(
            "command-sync-keep-erased-users",
            KeepErased(mpid: mpid(-7), erasedAt: Timestamp(milliseconds: 1_795_000_000_000), userIds: ["u1"])),
        message(
            "command-link-forget",
            ForgetPerson(userId: "u1", erasedAt: Timestamp(milliseconds: 1_795_000_000_000))),
        message(
            "command-user-forget",
            ForgetUser(
                userId: "u1", externalId: "anna", installIds: ["i1", "i2"],
                erasedAt: Timestamp(milliseconds: 1_795_000_000_000))),
        message(
            "command-verification-forget",
            ForgetSessions(mpids: [mpid(-7), mpid(1)])),
        message("event-user-activated", UserActivated(installId: "i1", userId: "u1")),
        message("event-user-erased", UserForgotten(userId: "u1")),
        message("event-sync-profile-erased", ProfileErased(mpid: mpid(-7), cause: .erase)),
        message(
            "event-sync-current-user-erased",
            CurrentUserErased(deviceId: "d1", mpid: mpid(-7), cause: .forget, move: 1_795_251_864_031)),
        message(
            "event-sync-value-too-common",
            ValueTooCommon(type: .iosIDFA, digest: String(repeating: "0a", count: 32), holders: 25, limit: 50)),
        reply(
            "reply-sync-erase-profile-ambiguous",
            Reply(
                commandId: "c1", commandType: EraseProfile.type, commandDigest: digest, status: .rejected,
                reason: .ambiguousIdentity,
                message: ReasonCode.ambiguousIdentity.defaultMessage,
                result: IdentityHolders(count: 2, heldByOthers: 1))),
        message("command-link-get-erasure", GetUserErasure(userId: "u1")),
        message("command-sync-get-erasure", GetProfileErasure(mpid: mpid(-7))),
        reply(
            "reply-link-erase-user-succeeded",
            Reply(
                commandId: "c1", commandType: EraseUser.type, commandDigest: digest, status: .succeeded,
                result: certificate)),
        reply(
            "reply-user-forget-succeeded",
            Reply(
                commandId: "c1", commandType: ForgetUser.type, commandDigest: digest, status: .succeeded,
                result: ErasureCertificate(
                    requestId: "c1", erasedAt: instant, completedAt: instant, subject: .init(userIds: ["u1"]),
                    done: .init(user: .init(installs: 2, codes: 1))))),
    ]

    private static let instant = Timestamp(milliseconds: 1_795_000_000_000)

    private static let certificate = ErasureCertificate(
        requestId: "c1", erasedAt: instant, completedAt: instant, subject: .init(userIds: ["u1"], mpids: [mpid(-7)]),
        done: .init(
            link: .init(persons: 1, installs: 2), user: .init(installs: 2, codes: 1),
            sync: .init(profiles: 1, identities: 3, devices: 1, aliases: 0), verification: .init()),
        heldByOthers: 1, remains: ErasureCertificate.Remainder.everywhere(inbox: instant))
}

extension ValidationTests {
    static let erasurePlaces: [Place] = [
        Place(name: "eraseProfile.identities", isIdentityValue: true) { EraseProfile(identities: ["email": $0]) },
        Place(name: "syncForget.userId") { ForgetProfiles(userId: UserID($0)) },
        Place(name: "syncForget.externalId", isIdentityValue: true) { ForgetProfiles(externalId: ExternalID($0)) },
        Place(name: "keepErased.userIds") {
            KeepErased(mpid: mpid(1), erasedAt: Timestamp(milliseconds: 0), userIds: [UserID($0)])
        },
        Place(name: "linkForget.userId") { ForgetPerson(userId: UserID($0)) },
        Place(name: "linkForget.externalId", isIdentityValue: true) { ForgetPerson(externalId: ExternalID($0)) },
        Place(name: "userForget.userId") { ForgetUser(userId: UserID($0)) },
        Place(name: "userForget.externalId", isIdentityValue: true) {
            ForgetUser(userId: "u", externalId: ExternalID($0))
        },
        Place(name: "userForget.installIds") { ForgetUser(userId: "u", installIds: ["i", InstallID($0)]) },
    ]
}

@Suite struct ErasureMessageTests {
    @Test(arguments: [
        "{}", #"{"mpid":"1","identities":{"email":"a"}}"#, #"{"identities":{"e-mail":"a"}}"#,
        #"{"identities":{"email":null}}"#, #"{"identities":{}}"#, #"{"mpid":0}"#, #"{"mpid":"1","persons":"all"}"#,
    ]) func aProfileIsNamedInOneWay(_ data: String) {
        #expect(throws: (any Error).self) {
            try WireJSONDecoder().decode(EraseProfile.self, from: Array(data.utf8)).validate()
        }
    }

    /// Counts add up, ids come once, and what remains the longest counts.
    @Test func partsOfAnErasureMakeOneCertificate() {
        func part(_ sessions: Int, until: Int64?) -> ErasureCertificate {
            ErasureCertificate(
                requestId: "part", erasedAt: Timestamp(milliseconds: 5), completedAt: Timestamp(milliseconds: 5),
                subject: .init(userIds: ["u2", "u1"], mpids: [mpid(3), mpid(-7)]),
                done: .init(verification: .init(sessions: sessions)), heldByOthers: 1,
                remains: [.init(place: .inbox, until: until.map { Timestamp(milliseconds: $0) })])
        }
        var whole = ErasureCertificate(
            requestId: "c1", erasedAt: Timestamp(milliseconds: 1), subject: .init(userIds: ["u1"], mpids: [mpid(3)]),
            done: .init(link: .init(persons: 1, installs: 2)),
            remains: ErasureCertificate.Remainder.everywhere(inbox: Timestamp(milliseconds: 7)))
        whole.add(part(2, until: 9))
        whole.add(part(1, until: 8))
        #expect(whole.requestId == "c1" && whole.completedAt == nil && whole.heldByOthers == 2)
        #expect(whole.subject == .init(userIds: ["u1", "u2"], mpids: [mpid(-7), mpid(3)]))
        #expect(whole.done == .init(link: .init(persons: 1, installs: 2), verification: .init(sessions: 3)))
        #expect(whole.remains == ErasureCertificate.Remainder.everywhere(inbox: Timestamp(milliseconds: 9)))
        whole.add(part(0, until: nil))
        #expect(whole.remains.first == .init(place: .inbox))
        whole.done.answerForAll()
        #expect(whole.done.sync == .init() && whole.done.user == .init() && whole.done.verification?.sessions == 3)
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
