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
        #expect(user.fingerprint == 4_165_176_167_946_256_873)
        let text = #"{"externalId":"anna","userId":"5a18fc4b0962209e0000000d"}"#
        #expect(try WireJSONDecoder().decode(ImportedUser.self, from: Array(text.utf8)).fingerprint == user.fingerprint)
        #expect(ImportedUser(userId: user.userId, externalId: "Anna").fingerprint != user.fingerprint)
    }

    /// Each member, changed or left out, makes another element of it.
    @Test func fingerprintsSayAll() throws {
        try expectAllSaid(
            ImportedUser.self,
            #"{"userId":"5a18fc4b0962209e0000000d","externalId":"anna","createdAt":"2024-03-01T00:00:00Z","#
                + #""installs":[{"installId":"i1","device":{"kind":"phone","platform":"ios","model":"m","#
                + #""osVersion":"1"},"isActive":true,"status":"disabled"},"#
                + #"{"installId":"i2","device":{"kind":"tablet","platform":"x"}}]}"#)
        try expectAllSaid(
            ImportedProfile.self,
            #"{"mpid":"77","identities":{"customerid":["a"],"email":["b","c"]},"firstSeen":"2024-03-01T00:00:00Z","#
                + #""lastSeen":"2024-03-02T00:00:00Z","name":"Anna","devices":[{"deviceId":"d1","isCurrent":true,"#
                + #""firstSeen":"2024-03-03T00:00:00Z","lastSeen":"2024-03-04T00:00:00Z"}]}"#)
        let split = ImportedProfile(
            mpid: try #require(MPID("77")), identities: [.email: ["b", "c"]], firstSeen: .init(milliseconds: 0),
            lastSeen: .init(milliseconds: 0))
        var joined = split
        joined.identities = ["email": IdentityValues(["bc"])]
        #expect(split.fingerprint != joined.fingerprint)
    }

    private func expectAllSaid<Element: ImportedElement>(_: Element.Type, _ text: String) throws {
        let whole = try JSONValue(parsing: Array(text.utf8))
        var known: [Int64: String] = [:]
        for other in [whole] + variants(of: whole) {
            // Not everything may be left out.
            guard let element = try? WireJSONDecoder().decode(Element.self, from: other.serialized()) else { continue }
            let says = String(decoding: other.serialized(), as: UTF8.self)
            #expect(known[element.fingerprint] == nil, "\(says) is taken for \(known[element.fingerprint] ?? "")")
            known[element.fingerprint] = says
        }
        #expect(known.count >= 20)
    }

    /// The same with one member or element changed, or left out, at any depth.
    private func variants(of value: JSONValue) -> [JSONValue] {
        switch value {
        case .object(let object):
            object.members.flatMap { member -> [JSONValue] in
                func with(_ other: JSONValue?) -> JSONValue {
                    .object(
                        JSONObject(
                            object.members.compactMap { one in
                                one.name == member.name ? other.map { (one.name, $0) } : (one.name, one.value)
                            }))
                }
                return [with(nil)] + variants(of: member.value).map { with($0) }
            }
        case .array(let elements):
            elements.indices.flatMap { index -> [JSONValue] in
                var without = elements
                without.remove(at: index)
                let changed = variants(of: elements[index]).map { other -> JSONValue in
                    var all = elements
                    all[index] = other
                    return .array(all)
                }
                return [.array(without)] + changed
            }
        case .bool(let truth): [.bool(!truth)]
        case .string(let text):
            // Another time, number, kind or status; or just another text.
            [
                text.replacing("2024", with: "2023"), text.replacing("77", with: "78"),
                text.replacing("phone", with: "other"), text.replacing("tablet", with: "other"),
                text.replacing("disabled", with: "deleted"), text + "x",
            ].filter { $0 != text }.map { .string($0) }
        default: []
        }
    }

    /// What stands in the place of an element is kept, so that the command is written as it was read.
    @Test func whatCannotBeReadIsWrittenAsItWas() throws {
        let text = #"{"users":[{"userId":1,"b":[2.50]},null,"x"]}"#
        let list = try WireJSONDecoder().decode(ImportUsers.self, from: Array(text.utf8))
        #expect(list.users.allSatisfy { if case .unreadable = $0 { true } else { false } })
        #expect(String(decoding: try WireJSONEncoder().encode(list), as: UTF8.self) == text)
    }
}
