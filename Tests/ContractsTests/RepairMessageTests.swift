// SPDX-License-Identifier: Apache-2.0

import Testing
import WireJSON

@testable import Contracts

private let other = MPID(1) ?? .max

extension GoldenTests {
    private static let moment = Timestamp(milliseconds: 1_795_000_000_000)
    private static let barrier = MergeBarrier(mpid: .max, identity: Identity(.email, "b@b.io"), otherMPID: other)

    static let repairSamples: [Sample] = [
        message("noted", DecisionsNoted(decisions: ["6bf2b1d0-0000-5000-8000-000000000001"])),
        message("command-link-get-user", GetLinkedUser(userId: "u1")),
        message("command-link-get-user-page", GetLinkedUser(installId: "i1", after: "bmV4dA")),
        message(
            "command-link-make-active", MakeInstallActive(installId: "i1", author: "kim", reason: "the phone is lost")),
        message("command-link-unlink-user", UnlinkUser(userId: "u1", author: "kim", reason: "wrong person")),
        message(
            "command-link-change-external-id",
            ChangeExternalID(externalId: "anna", newExternalId: "annette", author: "kim", reason: "typo")),
        message(
            "command-sync-detach",
            DetachIdentities(
                mpid: MPID.max, identities: [.init(type: "email", value: "b@b.io")], toMPID: other, author: "kim",
                reason: "two people")),
        message(
            "command-sync-allow",
            AllowMerge(mpid: MPID.max, otherMPID: other, author: "kim", reason: "one person after all")),
        message(
            "command-sync-restrict",
            RestrictProfile(
                identity: .init(type: "email", value: "b@b.io"), isRestricted: true, author: "kim", reason: "Art. 18")),
        message(
            "event-sync-restriction-changed",
            RestrictionChanged(mpid: .max, isRestricted: true, author: "kim", reason: "Art. 18")),
        message(
            "event-sync-user-restriction-changed",
            UserRestrictionChanged(userId: "u1", mpid: .max, isRestricted: true, changedAt: moment)),
        message(
            "event-sync-linked-user-changed",
            LinkedUserChanged(
                mpid: .max, cause: .link, previousUserId: "u1", userId: "u2",
                identities: [Identity(.customerID, "c1")])),
        message(
            "event-sync-profile-joined",
            ProfileJoined(
                sourceMPID: MPID(7) ?? .max, destinationMPID: .max, cause: .link,
                identities: [Identity(.email, "a@b.c")])),
        reply(
            "reply-sync-restrict-succeeded",
            Reply(
                commandId: "c1", commandType: RestrictProfile.type, commandDigest: digest, status: .succeeded,
                result: RestrictResult(mpid: .max, isRestricted: true, userId: "u1"))),
        message(
            "event-sync-profile-detached",
            ProfileDetached(
                fromMPID: .max, toMPID: other, identities: [Identity(.email, "b@b.io")], author: "kim",
                reason: "two people")),
        message(
            "event-sync-merge-barred",
            MergeBarred(mpid: .max, deviceId: "d1", cause: .login, types: [.email, .other])),
        message(
            "event-sync-merge-allowed",
            MergeAllowed(
                mpid: .max, allowed: [barrier], allowedCount: 1, author: "kim", reason: "one person after all")),
        reply(
            "reply-sync-detach-succeeded",
            Reply(
                commandId: "c1", commandType: DetachIdentities.type, commandDigest: digest, status: .succeeded,
                result: DetachResult(
                    mpid: .max, newMPID: other, moved: [Identity(.email, "b@b.io")],
                    devices: [
                        .init(
                            deviceId: "d1", mpid: other, endsSession: true,
                            nextLogin: .init(mpid: .max, barred: [.email]))
                    ], deviceCount: 1))),
        reply(
            "reply-sync-allow-succeeded",
            Reply(
                commandId: "c1", commandType: AllowMerge.type, commandDigest: digest, status: .succeeded,
                result: AllowResult(mpid: .max, allowed: [barrier], allowedCount: 1))),
        message("command-sync-get-profile", GetProfile(identity: .init(type: "email", value: "a@b.io"))),
        message("command-sync-get-profile-page", GetProfile(mpid: MPID.max, after: "bmV4dA")),
        message("command-link-facts", ReadFacts<FactsOf.Link>(FactsQuery(id: "i1"))),
        message("command-user-facts", ReadFacts<FactsOf.User>(FactsQuery(id: "c1", source: "backend"))),
        message("command-sync-facts", ReadFacts<FactsOf.Sync>(FactsQuery(id: "a@b.io", page: "AAAA"))),
        message("command-verification-facts", ReadFacts<FactsOf.Verification>(FactsQuery(id: "d1"))),
        message(
            "event-link-install-chosen",
            InstallStatusChanged(
                installId: "i1", status: .enabled, isActive: true, userId: "u1", isLinked: true, cause: .chosen,
                version: 4, author: "kim", reason: "the phone is lost")),
        message(
            "event-link-external-id-changed",
            ExternalIDChanged(
                userId: "u1", externalId: "annette", previousExternalId: "anna", linkedAt: moment, author: "kim",
                reason: "typo")),
        message(
            "event-link-external-id-removed",
            ExternalIDRemoved(
                userId: "u1", externalId: "anna", unlinkedAt: moment, author: "kim", reason: "wrong person")),
        message("event-user-unlinked", UserUnlinked(installId: "i1", userId: "u1")),
        reply(
            "reply-link-get-user-succeeded",
            Reply(
                commandId: "c1", commandType: GetLinkedUser.type, commandDigest: digest, status: .succeeded,
                result: LinkedUserResult(
                    userId: "u1", externalId: "anna", linkedAt: moment, createdAt: moment, isErased: false,
                    installs: [
                        .init(
                            installId: "i1", device: Device(kind: .tablet, platform: "android"), status: .enabled,
                            isActive: false, inactiveBecause: .waitsForPhone, isUsersFirst: true, version: 2)
                    ], next: "bmV4dA"))),
        reply(
            "reply-sync-get-profile-succeeded",
            Reply(
                commandId: "c1", commandType: GetProfile.type, commandDigest: digest, status: .succeeded,
                result: ProfileResult(
                    mpid: MPID.max, identities: ["email": ["a@b.io"], "customerid": ["anna"]], identityCount: 2,
                    isLoggedIn: true, firstSeen: moment, lastSeen: moment, aliasedSince: moment,
                    aliasedFrom: [MPID.max], aliasedFromCount: 1, name: "Anna", userId: "u1",
                    devices: [.init(deviceId: "d1", isCurrent: true, firstSeen: moment, lastSeen: moment)],
                    deviceCount: 101, next: "bmV4dA", barriers: [barrier], barrierCount: 1, isOrphaned: false,
                    isErased: false))),
        reply(
            "reply-link-facts-succeeded",
            Reply(
                commandId: "c1", commandType: ReadFacts<FactsOf.Link>.type, commandDigest: digest, status: .succeeded,
                result: FactsResult(
                    id: "i1", state: [["kind": "install", "installId": "i1"]],
                    facts: [
                        Fact(
                            service: "link", decidedAt: moment, topic: "identity.link.commands.v1", partition: 3,
                            offset: 7, type: LinkRequest.type, source: "backend", commandId: "c0",
                            traceId: "4bf92f3577b34da6a3ce929d0e0e4736", outcome: "succeeded", result: ["userId": "u1"],
                            events: [.init(type: "identity.link.linked.v1", data: ["installId": "i1"])]),
                        Fact(
                            service: "link", decidedAt: moment, topic: "identity.link.commands.v1", partition: 3,
                            offset: 5, type: LinkRequest.type, source: "backend", commandId: "c-1",
                            outcome: "rejected", reason: "INSTALL_NOT_FOUND", message: "no", hasSecret: true,
                            commands: [.init(type: "identity.user.forget.v1", data: .null)]),
                    ], next: "AAAA"))),
    ]
}

/// What a repair and a read must say.
@Suite struct RepairMessageTests {
    private static func isRefused(_ message: some CommandMessage) -> Bool {
        do throws(Rejection) {
            try message.validate()
            return false
        } catch {
            return error.reason == .invalidRequest || error.reason == .validationError
        }
    }

    @Test func aReadNamesWhomItIsAboutOnce() {
        #expect(Self.isRefused(GetLinkedUser()))
        #expect(Self.isRefused(GetLinkedUser(userId: "u", externalId: "e")))
        #expect(Self.isRefused(GetLinkedUser(externalId: "e", installId: "i")))
        #expect(!Self.isRefused(GetLinkedUser(installId: "i", after: "h")))
        #expect(Self.isRefused(GetProfile(identity: .init(type: "no such type", value: "x"))))
        #expect(Self.isRefused(GetProfile(identity: .init(type: "email", value: ""))))
        #expect(!Self.isRefused(GetProfile(mpid: MPID.max)))
        for after in ["", String(repeating: "a", count: 1001), "a\n"] {
            #expect(Self.isRefused(GetLinkedUser(userId: "u", after: after)))
            #expect(Self.isRefused(GetProfile(mpid: MPID.max, after: after)))
        }
    }

    /// What is noted of who reads says whom it is about as the question does.
    @Test(arguments: [
        (GetLinkedUser(userId: "u") as any PersonQuery, "userId u"), (GetLinkedUser(externalId: "e"), "externalId e"),
        (GetLinkedUser(installId: "i"), "installId i"), (GetSession(deviceId: "d"), "deviceId d"),
        (GetProfile(mpid: MPID.max), "mpid \(MPID.max)"), (GetDeviceUsers(deviceId: "d"), "deviceId d"),
        (GetProfile(identity: .init(type: "email", value: "a@b.io")), "email a@b.io"),
    ])
    func aQuestionSaysWhomItIsAbout(_ row: (query: any PersonQuery, subject: String)) {
        #expect("\(row.query.subject.kind) \(row.query.subject.name)" == row.subject)
        #expect(row.query.partitionSubject == row.query.subject.name)
    }

    @Test func whatIsTakenApartIsNamed() {
        func detach(_ count: Int, _ type: String = "email", _ value: String = "x", to mpid: MPID? = nil) -> Bool {
            Self.isRefused(
                DetachIdentities(
                    mpid: MPID.max, identities: Array(repeating: .init(type: type, value: value), count: count),
                    toMPID: mpid, author: "a", reason: "r"))
        }
        #expect(detach(0) && !detach(1) && !detach(100) && detach(101))
        #expect(detach(1, "no such type") && detach(1, "email", "") && detach(1, to: MPID.max))
        func allow(_ other: MPID?, _ identity: GetProfile.Named?) -> Bool {
            Self.isRefused(
                AllowMerge(mpid: MPID.max, otherMPID: other, identity: identity, author: "a", reason: "r"))
        }
        let email = GetProfile.Named(type: "email", value: "x")
        #expect(allow(nil, nil) && allow(other, email) && !allow(other, nil) && !allow(nil, email))
        #expect(allow(nil, .init(type: "no such type", value: "x")) && allow(nil, .init(type: "email", value: "")))
    }

    @Test func whoIsRestrictedIsNamed() {
        func restrict(_ mpid: MPID?, _ identity: GetProfile.Named?) -> Bool {
            Self.isRefused(
                RestrictProfile(mpid: mpid, identity: identity, isRestricted: true, author: "a", reason: "r"))
        }
        let email = GetProfile.Named(type: "email", value: "x")
        #expect(restrict(nil, nil) && restrict(.max, email) && !restrict(.max, nil) && !restrict(nil, email))
        #expect(
            restrict(nil, .init(type: "no such type", value: "x")) && restrict(nil, .init(type: "email", value: "")))
    }

    @Test(arguments: [(0, true), (1, false), (255, false), (256, true)]) func anAuthorIsNamed(
        _ bytes: Int, _ isRefused: Bool
    ) {
        let author = String(repeating: "a", count: bytes)
        #expect(Self.isRefused(UnlinkUser(userId: "u", author: author, reason: "r")) == isRefused)
        #expect(Self.isRefused(MakeInstallActive(installId: "i", author: author, reason: "r")) == isRefused)
        #expect(
            Self.isRefused(AllowMerge(mpid: .max, otherMPID: other, author: author, reason: "r")) == isRefused)
        #expect(
            Self.isRefused(RestrictProfile(mpid: .max, isRestricted: true, author: author, reason: "r")) == isRefused)
        #expect(
            Self.isRefused(
                DetachIdentities(
                    mpid: .max, identities: [.init(type: "email", value: "x")], author: author, reason: "r"))
                == isRefused)
        #expect(
            Self.isRefused(ChangeExternalID(userId: "u", newExternalId: "e", author: author, reason: "r")) == isRefused)
    }

    @Test(arguments: [(0, true), (1, false), (1000, false), (1001, true)]) func aReasonIsGiven(
        _ bytes: Int, _ isRefused: Bool
    ) {
        let reason = String(repeating: "a", count: bytes)
        #expect(Self.isRefused(UnlinkUser(userId: "u", author: "a", reason: reason)) == isRefused)
        #expect(
            Self.isRefused(
                ChangeExternalID(userId: "u", externalId: "x", newExternalId: "e", author: "a", reason: reason)))
    }
}
