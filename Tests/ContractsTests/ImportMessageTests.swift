// SPDX-License-Identifier: Apache-2.0

import Testing
import WireJSON

@testable import Contracts

extension GoldenTests {
    private static let seen = Timestamp(milliseconds: 1_700_000_000_000)

    private static let user = ImportedUser(
        userId: "5a18fc4b0962209e0000000d", externalId: "anna", createdAt: seen,
        installs: [
            .init(
                installId: "i1", device: Device(kind: .phone, platform: "ios"), isActive: true, status: .enabled)
        ])

    private static let profile = ImportedProfile(
        mpid: .max, identities: [.email: ["a@b.io"], .other: ["1", "2"]], firstSeen: seen, lastSeen: seen, name: "Anna",
        devices: [.init(deviceId: "d1", isCurrent: true, firstSeen: seen, lastSeen: seen)])

    static let importSamples: [Sample] = [
        message("command-link-import-users", ImportUsers(users: [.read(user)], upsert: true, events: false)),
        message(
            "command-sync-import-profiles", ImportProfiles(profiles: [.read(profile)], upsert: true, events: false)),
        reply(
            "reply-link-import-users-succeeded",
            Reply(
                commandId: "c1", commandType: ImportUsers.type, commandDigest: digest, status: .succeeded,
                result: ImportResult(results: [
                    .init(index: 0, outcome: .created), .init(index: 1, outcome: .conflict, reason: .externalIDTaken),
                    .init(index: 2, invalid: "userId is not 24 lower-case hex characters"),
                ]))),
        reply(
            "reply-sync-import-profiles-succeeded",
            Reply(
                commandId: "c1", commandType: ImportProfiles.type, commandDigest: digest, status: .succeeded,
                result: ImportResult(results: [
                    .init(index: 0, outcome: .conflict, reason: .identityTaken, type: .customerID)
                ]))),
        message(
            "event-link-linked-import",
            Linked(
                installId: "i1", externalId: "anna", userId: user.userId, personCreated: true, activeInstallId: "i1",
                deactivatedInstallIds: [], version: 1, linkedAt: seen, cause: .importing)),
        message(
            "event-link-install-registered-import",
            InstallRegistered(
                installId: "i1", device: Device(kind: .phone, platform: "ios"), userId: user.userId, cause: .importing)),
        message(
            "event-sync-profile-created-import",
            ProfileCreated(
                mpid: .max, cause: .importing, rule: .imported, isLoggedIn: true,
                identities: [Identity(.email, "a@b.io")])),
    ]
}

@Suite struct ImportMessageTests {
    /// Codes that programs outside rely on.
    @Test func conflictsArePinned() {
        #expect(
            ImportConflict.allCases.map(\.rawValue) == [
                "EXTERNAL_ID_TAKEN", "USER_ID_TAKEN", "USER_ERASED", "PROFILE_ERASED", "IDENTITY_TAKEN",
                "INSTALL_TAKEN",
                "DEVICE_TAKEN", "TWO_ACTIVE_INSTALLS", "VALUE_NAMES_NOBODY", "IMMUTABLE", "LIMIT_EXCEEDED", "BAD_TIME",
                "DIFFERS", "MERGE_BARRED", "RESTRICTED",
            ])
        #expect(ImportOutcome.allCases.map(\.rawValue) == ["created", "same", "changed", "conflict", "invalid"])
    }

    /// L152, S152: stored, so it never changes for the same element.
    @Test func fingerprintsArePinned() throws {
        let user = ImportedUser(userId: "5a18fc4b0962209e0000000d", externalId: "anna")
        #expect(user.fingerprint == user.fingerprint)
        let text = #"{"externalId":"anna","userId":"5a18fc4b0962209e0000000d"}"#
        #expect(try WireJSONDecoder().decode(ImportedUser.self, from: Array(text.utf8)).fingerprint == user.fingerprint)
        #expect(ImportedUser(userId: user.userId, externalId: "Anna").fingerprint != user.fingerprint)
    }

    /// What stands in the place of an element is kept, so that the command is written as it was read.
    @Test func whatCannotBeReadIsWrittenAsItWas() throws {
        let text = #"{"users":[{"userId":1,"b":[2.50]},null,"x"]}"#
        let list = try WireJSONDecoder().decode(ImportUsers.self, from: Array(text.utf8))
        #expect(list.users.allSatisfy { if case .unreadable = $0 { true } else { false } })
        #expect(String(decoding: try WireJSONEncoder().encode(list), as: UTF8.self) == text)
    }
}
