// SPDX-License-Identifier: Apache-2.0

import Crypto
import Testing
import WireJSON

@testable import Contracts

private func mpid(_ value: Int64) -> MPID {
    guard let mpid = MPID(value) else { preconditionFailure("0 is no MPID") }
    return mpid
}

extension GoldenTests {
    private static let request = SyncRequest(
        deviceId: "d1", knownIdentities: ["customerid": "ABC123", "email": nil, "other": "x"], previousMPID: mpid(-7),
        environment: .production, requestId: "r1", requestTimestampMs: 1_795_251_794_133, context: "c")

    private static let login = SyncRequest(
        deviceId: "d1", knownIdentities: ["customerid": "ABC123"], name: "Anna", vouchedFor: [.customerID, .email],
        clearAnonymousUser: true)

    static let syncSamples: [Sample] = [
        message("command-sync-identify", IdentifyUser(request)),
        message("command-sync-login", LogInUser(login)),
        message("command-sync-logout", LogOutUser(SyncRequest(deviceId: "d1", knownIdentities: [:]))),
        message("command-sync-search", SearchUser(SyncRequest(deviceId: "d1", knownIdentities: ["email": "a@b.io"]))),
        message(
            "command-sync-modify",
            ModifyIdentities(
                mpid: mpid(.min),
                changes: [.init(identityType: "email", oldValue: "a@b.io", newValue: "c@d.io")], deviceId: "d1")),
        message(
            "command-sync-modify-remove",
            ModifyIdentities(mpid: mpid(1), changes: [.init(identityType: "email", oldValue: "a@b.io")])),
        message(
            "command-sync-alias",
            AliasUsers(
                sourceMPID: mpid(1), destinationMPID: mpid(-2), startUnixtimeMs: 1_795_251_864_031,
                endUnixtimeMs: 1_795_251_864_084, scope: .device, deviceApplicationStamp: "das")),
        message("command-sync-apply-alias", ApplyAlias(aliasId: "a1", destinationMPID: mpid(-2))),
        message("command-sync-get-users", GetDeviceUsers(deviceId: "d1")),
        message(
            "event-sync-profile-created",
            ProfileCreated(
                mpid: mpid(.max), cause: .login, rule: .createdForLogin, isLoggedIn: true,
                identities: [Identity(.customerID, "ABC123")])),
        message(
            "event-sync-current-user-changed",
            CurrentUserChanged(
                deviceId: "d1", previousMPID: mpid(1), mpid: mpid(2), cause: .logout, rule: .createdForLogout,
                isLoggedIn: false, isEphemeral: true, move: 1_795_251_864_031)),
        message(
            "event-sync-identities-changed",
            IdentitiesChanged(
                mpid: mpid(2), cause: .modify, reason: .taken, added: [], removed: [Identity(.email, "a@b.io")],
                isLoggedIn: false)),
        message("event-sync-profile-orphaned", ProfileOrphaned(mpid: mpid(2), cause: .modify, takenBy: mpid(1))),
        message(
            "event-sync-aliased",
            Aliased(
                aliasId: "a1", sourceMPID: mpid(1), destinationMPID: mpid(2), startUnixtimeMs: 1, endUnixtimeMs: 2,
                scope: .device, deviceApplicationStamp: nil, firstSeen: time("2026-11-21T10:24:04.123Z"))),
        message(
            "event-sync-alias-dropped",
            AliasDropped(
                aliasId: "a1", sourceMPID: mpid(1), destinationMPID: mpid(2), rule: .sourceWasSourceBefore)),
        reply(
            "reply-sync-login-succeeded",
            Reply(
                commandId: "c1", commandType: LogInUser.type, commandDigest: digest, status: .succeeded,
                result: SyncResult(
                    mpid: mpid(6_504_934_091_054_997_508), previousMPID: mpid(-7), move: 1_795_251_864_031,
                    isLoggedIn: true,
                    isEphemeral: false, matchedIdentities: ["customerid": "ABC123"], previousMismatch: false,
                    context: "c", rule: .converted))),
        reply(
            "reply-sync-modify-succeeded",
            Reply(
                commandId: "c1", commandType: ModifyIdentities.type, commandDigest: digest, status: .succeeded,
                result: SyncResult(
                    mpid: mpid(1), isLoggedIn: true, isEphemeral: false,
                    changeResults: [
                        .init(identityType: .email, modifiedMPID: mpid(1)),
                        .init(identityType: .email, modifiedMPID: mpid(2)),
                    ], rule: .named))),
        reply(
            "reply-sync-alias-succeeded",
            Reply(
                commandId: "c1", commandType: AliasUsers.type, commandDigest: digest, status: .succeeded,
                result: AliasResult(aliasId: "a1", isScheduled: true, appliesAt: time("2026-11-22T10:24:04.123Z")))),
        reply(
            "reply-sync-get-users-succeeded",
            Reply(
                commandId: "c1", commandType: GetDeviceUsers.type, commandDigest: digest, status: .succeeded,
                result: DeviceUsersResult(
                    deviceId: "d1",
                    users: [
                        .init(
                            mpid: mpid(1), firstSeen: time("2026-11-21T10:24:04.123Z"),
                            lastSeen: time("2026-11-21T11:24:04.123Z"), isLoggedIn: true, isCurrent: true, name: "Anna",
                            identities: ["email": ["a@b.io", "c@d.io"]])
                    ]))),
    ]
}

extension ValidationTests {
    static let syncPlaces: [Place] = [
        Place(name: "identify.deviceId") { IdentifyUser(SyncRequest(deviceId: DeviceID($0), knownIdentities: [:])) },
        Place(name: "identify.email", isIdentityValue: true) {
            IdentifyUser(SyncRequest(deviceId: "d", knownIdentities: ["email": $0]))
        },
        Place(name: "login.deviceId") { LogInUser(SyncRequest(deviceId: DeviceID($0), knownIdentities: [:])) },
        Place(name: "logout.requestId") {
            LogOutUser(SyncRequest(deviceId: "d", knownIdentities: [:], requestId: $0))
        },
        Place(name: "modify.newValue", isIdentityValue: true) {
            ModifyIdentities(mpid: mpid(1), changes: [.init(identityType: "other10", newValue: $0)])
        },
        Place(name: "modify.deviceId") { ModifyIdentities(mpid: mpid(1), changes: [], deviceId: DeviceID($0)) },
        Place(name: "alias.deviceApplicationStamp", isIdentityValue: true) {
            AliasUsers(sourceMPID: mpid(1), destinationMPID: mpid(2), deviceApplicationStamp: $0)
        },
        Place(name: "applyAlias.aliasId") { ApplyAlias(aliasId: AliasID($0), destinationMPID: mpid(1)) },
        Place(name: "getUsers.deviceId") { GetDeviceUsers(deviceId: DeviceID($0)) },
    ]

    static let syncEntries: [Entry] =
        ["identify", "login", "logout", "search"].map {
            Entry(
                type: "identity.sync.\($0).v1", scope: .identitySync,
                data: ["deviceId": "d", "knownIdentities": ["email": nil]], subject: "d")
        } + [
            Entry(
                type: "identity.sync.modify.v1", scope: .identitySync, data: ["mpid": "-5", "changes": []],
                subject: "-5"),
            Entry(
                type: "identity.sync.alias.v1", scope: .identitySync, data: ["sourceMPID": 1, "destinationMPID": "2"],
                subject: "2"),
            Entry(
                type: "identity.sync.apply-alias.v1", scope: .internal, data: ["aliasId": "a", "destinationMPID": "2"],
                subject: "2"),
            Entry(
                type: "identity.sync.detach.v1", scope: .support,
                data: [
                    "mpid": "1", "identities": [["type": "email", "value": "x"]], "author": "a", "reason": "r",
                ], subject: "1"),
            Entry(
                type: "identity.sync.allow.v1", scope: .support,
                data: ["mpid": "1", "otherMPID": "2", "author": "a", "reason": "r"], subject: "1"),
            Entry(
                type: "identity.sync.restrict.v1", scope: .support,
                data: ["mpid": "1", "isRestricted": true, "author": "a", "reason": "r"], subject: "1"),
            Entry(
                type: "identity.sync.import-profiles.v1", scope: .importing,
                data: [
                    "profiles": [
                        [
                            "mpid": "-5", "identities": [:], "firstSeen": "2024-03-01T00:00:00Z",
                            "lastSeen": "2024-03-01T00:00:00Z",
                        ]
                    ]
                ], subject: "-5"),
            Entry(type: "identity.sync.get-users.v1", scope: .identitySync, data: ["deviceId": "d"], subject: "d"),
            Entry(type: "identity.sync.erase-profile.v1", scope: .userDelete, data: ["mpid": "-5"], subject: "-5"),
            Entry(type: "identity.sync.forget.v1", scope: .internal, data: ["externalId": "x"], subject: "x"),
            Entry(
                type: "identity.sync.keep-erased.v1", scope: .internal,
                data: ["mpid": "-5", "erasedAt": "2026-11-21T10:24:04.123Z", "whom": "00"], subject: "-5"),
            Entry(type: "identity.sync.get-erasure.v1", scope: .userDelete, data: ["mpid": "-5"], subject: "-5"),
            Entry(
                type: "identity.sync.get-profile.v1", scope: .support,
                data: ["identity": ["type": "email", "value": "a@b.io"]], subject: "a@b.io"),
        ] + requestEntries + [
            Entry(
                type: "identity.sync.expire-profile.v1", scope: .internal,
                data: ["mpid": "7", "lastSeen": "2026-01-01T00:00:00.000Z"], subject: "7"),
            Entry(
                type: "identity.sync.expire-device.v1", scope: .internal,
                data: ["deviceId": "d", "lastSeen": "2026-01-01T00:00:00.000Z"], subject: "d"),
            Entry(type: "identity.sync.facts.v1", scope: .support, data: ["id": "x"], subject: "x"),
        ]

    private static let requestEntries: [Entry] = [
        Entry(
            type: "identity.sync.file-request.v1", scope: .userDelete,
            data: ["requestId": "r", "kind": "erasure", "mpid": "7"], subject: "r"),
        Entry(type: "identity.sync.get-request.v1", scope: .userDelete, data: ["requestId": "r"], subject: "r"),
        Entry(type: "identity.sync.get-requests.v1", scope: .userDelete, data: ["groupId": "g"], subject: "g"),
        Entry(type: "identity.sync.cancel-request.v1", scope: .userDelete, data: ["requestId": "r"], subject: "r"),
        Entry(type: "identity.sync.get-request-results.v1", scope: .support, data: ["requestId": "r"], subject: "r"),
        Entry(type: "identity.sync.process-request.v1", scope: .internal, data: ["requestId": "r"], subject: "r"),
    ]
}

@Suite struct SyncMessageTests {
    @Test(
        arguments: [
            (#""1""#, 1), ("1", 1), (#""-7000000000000000002""#, -7_000_000_000_000_000_002),
            ("9223372036854775807", .max), (#""9223372036854775807""#, .max), ("-9223372036854775808", .min),
            (#""-9223372036854775808""#, .min), ("9007199254740993", 9_007_199_254_740_993),
            ("0", nil), (#""0""#, nil), (#""-0""#, nil), ("9223372036854775808", nil), (#""9223372036854775808""#, nil),
            ("1.5", nil), ("1e3", nil), ("1.0", nil), (#""+1""#, nil), (#"" 1""#, nil), (#""""#, nil), (#""abc""#, nil),
            (#""0x1""#, nil), ("true", nil), ("[]", nil), ("null", nil),
        ] as [(String, Int64?)]) func mpidsAreExact(_ json: String, _ value: Int64?) throws
    {
        let read = try? WireJSONDecoder().decode(MPID.self, from: Array(json.utf8))
        #expect(read?.value == value)
        if let read {
            #expect(String(decoding: try WireJSONEncoder().encode(read), as: UTF8.self) == #""\#(read.value)""#)
        }
    }

    /// 0 and null are the clients' ways to say that there was nobody; anything else must be an MPID.
    @Test(
        arguments: [
            ("0", true, nil), (#""0""#, true, nil), ("null", true, nil), ("5", true, 5), (#""-5""#, true, -5),
            (#""garbage""#, false, nil), ("18446744073709551615", false, nil), ("{}", false, nil),
        ] as [(String, Bool, Int64?)]) func previousMPID(_ json: String, _ isRead: Bool, _ value: Int64?)
    {
        let data = #"{"deviceId":"d","knownIdentities":{"email":"e"},"previousMPID":\#(json)}"#
        let read = try? WireJSONDecoder().decode(IdentifyUser.self, from: Array(data.utf8))
        #expect((read != nil) == isRead)
        #expect(read?.request.previousMPID?.value == value)
    }

    @Test func unknownIdentityTypesAreValidationErrors() {
        for name in ["Email", "e-mail", "", "customer_id", "other11", String(repeating: "x", count: 9999)] {
            let messages: [any CommandMessage] = [
                IdentifyUser(SyncRequest(deviceId: "d", knownIdentities: [name: nil])),
                ModifyIdentities(mpid: mpid(1), changes: [.init(identityType: name)]),
            ]
            for message in messages {
                let rejection = #expect(throws: Rejection.self) { try message.validate() }
                #expect(rejection?.reason == .validationError)
                #expect((rejection?.message.utf8.count ?? 999) < 200)
            }
        }
    }

    @Test func nonStringValuesAreRefused() {
        for value in ["1", "true", "[]", "{}"] {
            let data = #"{"deviceId":"d","knownIdentities":{"email":\#(value)}}"#
            #expect(throws: DecodingError.self) {
                try WireJSONDecoder().decode(IdentifyUser.self, from: Array(data.utf8))
            }
        }
    }

    @Test func names() {
        let valid = { (name: String) in
            (try? LogInUser(SyncRequest(deviceId: "d", knownIdentities: [:], name: name)).validate()) != nil
        }
        #expect(valid(String(repeating: "\u{1F44B}", count: 255)))
        #expect(!valid(String(repeating: "x", count: 256)))
        #expect(!valid("") && !valid("a\nb"))
    }

    @Test func derivedMPIDsAreWellMixed() {
        let salt = DerivedID.Salt(SymmetricKey(data: [UInt8](repeating: 7, count: 32)))
        let ids = (0..<20_000).map {
            DerivedID.mpid(salt: salt, of: CommandKey(app: "a", source: "s", id: CommandID("c\($0)")), counter: 0)
        }
        #expect(Set(ids).count == ids.count)
        // Clients compare the low 32 bits only (F26); each half looks random, signs are balanced.
        #expect(Set(ids.map { Int32(truncatingIfNeeded: $0.value) }).count > ids.count - 10)
        #expect(Set(ids.map { Int32(truncatingIfNeeded: $0.value >> 32) }).count > ids.count - 10)
        #expect((9_500...10_500).contains(ids.count { $0.value < 0 }))
        #expect(DerivedID.mpid(salt: salt, of: CommandKey(app: "a", source: "s", id: "c1"), counter: 0) == ids[1])
        #expect(DerivedID.mpid(salt: salt, of: CommandKey(app: "a", source: "s", id: "c1"), counter: 1) != ids[1])
        #expect(DerivedID.mpid(salt: salt, of: CommandKey(app: "b", source: "s", id: "c1"), counter: 0) != ids[1])
    }
}
