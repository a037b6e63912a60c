// SPDX-License-Identifier: Apache-2.0

import Testing
import WireJSON

@testable import Contracts

/// The limits of every command (docs/contracts.md "Limits").
@Suite struct ValidationTests {
    /// A command made with one text in one place.
    struct Place: Sendable, CustomTestStringConvertible {
        var name: String
        var isIdentityValue = false
        var make: @Sendable (String) -> any CommandMessage
        var testDescription: String { name }
    }

    private static let device = Device(kind: .phone, platform: "ios")

    static let places: [Place] =
        [
            Place(name: "request.installId") { LinkRequest(installId: InstallID($0), externalId: "anna") },
            Place(name: "request.externalId", isIdentityValue: true) {
                LinkRequest(installId: "i1", externalId: ExternalID($0))
            },
            Place(name: "register.installId") {
                RegisterInstall(installId: InstallID($0), device: device, user: .none)
            },
            Place(name: "register.platform") {
                RegisterInstall(installId: "i1", device: Device(kind: .phone, platform: $0), user: .none)
            },
            Place(name: "register.model") {
                RegisterInstall(installId: "i1", device: Device(kind: .phone, platform: "p", model: $0), user: .none)
            },
            Place(name: "register.osVersion") {
                RegisterInstall(
                    installId: "i1", device: Device(kind: .phone, platform: "p", osVersion: $0), user: .none)
            },
            Place(name: "establish.installId") {
                EstablishLink(installId: InstallID($0), device: device, externalId: "anna", mode: .create)
            },
            Place(name: "establish.platform") {
                EstablishLink(
                    installId: "i", device: Device(kind: .phone, platform: $0), externalId: "a", mode: .create)
            },
            Place(name: "establish.externalId", isIdentityValue: true) {
                EstablishLink(installId: "i1", device: device, externalId: ExternalID($0), mode: .create)
            },
            Place(name: "query.installId") { QueryInstall(installId: InstallID($0)) },
            Place(name: "detach.installId") { DetachInstall(installId: InstallID($0), cause: .reset) },
            Place(name: "setStatus.installId") { SetInstallStatus(installId: InstallID($0), status: .enabled) },
            Place(name: "erase.userId") { EraseUser(userId: UserID($0)) },
            Place(name: "erase.author") { EraseUser(userId: "u", author: $0) },
        ] + syncPlaces + erasurePlaces

    private func isValid(_ message: any CommandMessage) -> Bool {
        do throws(Rejection) {
            try message.validate()
            return true
        } catch {
            #expect(error.reason == .invalidRequest)
            #expect(error.message.hasPrefix("data."))
            #expect(error.message.utf8.count < 200)
            return false
        }
    }

    @Test(arguments: places) func limits(_ place: Place) {
        let most = place.isIdentityValue ? 750 : 255
        #expect(!isValid(place.make("")))
        #expect(isValid(place.make("x")))
        #expect(isValid(place.make(String(repeating: "x", count: most))))
        #expect(!isValid(place.make(String(repeating: "x", count: most + 1))))
        // Ids are counted in bytes, identity values in characters.
        #expect(isValid(place.make(String(repeating: "\u{e9}", count: 127))))
        #expect(isValid(place.make(String(repeating: "\u{e9}", count: 128))) == place.isIdentityValue)
        #expect(isValid(place.make(String(repeating: "\u{e9}", count: 750))) == place.isIdentityValue)
    }

    /// An id that nobody sees is a slip, and would be one for many.
    @Test(arguments: places) func invisibleIds(_ place: Place) {
        let ids = ["installId", "installIds", "deviceId", "userId", "userIds", "aliasId"]
        let isId = ids.contains { place.name.hasSuffix(".\($0)") }
        for text in [" ", "\u{200B}", "\u{FFFC}", "\u{301}", "\u{E0FFF}"] {
            #expect(isValid(place.make(text)) == !isId, "\(text.debugDescription)")
        }
        #expect(isValid(place.make("\u{200B}1\u{301}")))
    }

    @Test(arguments: places) func controlCharacters(_ place: Place) {
        for text in ["a\0", "a\nb", "\u{7F}", "a\u{85}b", "\u{1B}[0m"] { #expect(!isValid(place.make(text))) }
        for text in ["a b", "\u{e9}", "\u{1F44B}", "a\u{301}", "'; DROP TABLE installs", "100%"] {
            #expect(isValid(place.make(text)))
        }
    }

    // MARK: The catalog

    struct Entry: Sendable, CustomTestStringConvertible {
        var type: String
        var scope: Scope
        var data: JSONValue
        var subject: String
        var testDescription: String { type }
    }

    static let entries: [Entry] =
        [
            Entry(
                type: "identity.link.request.v1", scope: .userLink, data: ["installId": "i", "externalId": "x"],
                subject: "x"),
            Entry(
                type: "identity.link.register-install.v1", scope: .internal,
                data: ["installId": "i", "device": ["kind": "phone", "platform": "p"], "user": "new"], subject: "i"),
            Entry(
                type: "identity.link.establish.v1", scope: .internal,
                data: [
                    "installId": "i", "device": ["kind": "tablet", "platform": "p"], "externalId": "x",
                    "mode": "link-existing-user",
                ], subject: "x"),
            Entry(type: "identity.link.query.v1", scope: .internal, data: ["installId": "i"], subject: "i"),
            Entry(
                type: "identity.link.detach-install.v1", scope: .internal,
                data: ["installId": "i", "cause": "reset"], subject: "i"),
            Entry(
                type: "identity.link.set-install-status.v1", scope: .admin,
                data: ["installId": "i", "status": "disabled"], subject: "i"),
            Entry(type: "identity.link.erase-user.v1", scope: .userDelete, data: ["userId": "u"], subject: "u"),
            Entry(
                type: "identity.link.forget.v1", scope: .internal, data: ["userId": "u", "externalId": "x"],
                subject: "x"),
            Entry(type: "identity.link.get-erasure.v1", scope: .userDelete, data: ["userId": "u"], subject: "u"),
            Entry(type: "identity.link.get-user.v1", scope: .support, data: ["externalId": "x"], subject: "x"),
            Entry(
                type: "identity.link.make-active.v1", scope: .support,
                data: ["installId": "i", "author": "a", "reason": "r"], subject: "i"),
            Entry(
                type: "identity.link.unlink-user.v1", scope: .support,
                data: ["userId": "u", "author": "a", "reason": "r"], subject: "u"),
            Entry(
                type: "identity.link.change-external-id.v1", scope: .support,
                data: ["userId": "u", "newExternalId": "x", "author": "a", "reason": "r"], subject: "x"),
            Entry(
                type: "identity.link.import-users.v1", scope: .importing,
                data: ["users": [["userId": 1], ["userId": "0000000000000000000000aa"]]],
                subject: "0000000000000000000000aa"),
            Entry(
                type: "identity.link.expire-user.v1", scope: .internal, data: ["installId": "i", "userId": "u"],
                subject: "i"),
            Entry(type: "identity.link.facts.v1", scope: .support, data: ["id": "x"], subject: "x"),
        ] + syncEntries

    @Test(arguments: entries) func catalog(_ entry: Entry) {
        let known = commandTypes.first { $0.name == entry.type }
        #expect(known?.scope == entry.scope)
        #expect(known?.partitionSubject(of: entry.data) == entry.subject)
        #expect(known?.partitionSubject(of: [:]) == nil)
        #expect(
            CommandType.service(of: entry.type)
                == entry.type.split(separator: ".").dropFirst().first.map(String.init))
        let short = String(entry.type.dropFirst("identity.".count).dropLast(".v1".count))
        #expect(CommandType.fullName(short) == entry.type)
        #expect(CommandType.fullName(entry.type) == entry.type)
    }

    @Test func catalogIsComplete() {
        // Services whose commands have a table of their own are not in this one.
        let services = Set(Self.entries.map { CommandType.service(of: $0.type) })
        let types = commandTypes.map(\.name).filter { services.contains(CommandType.service(of: $0)) }
        #expect(types == Self.entries.map(\.type))
    }

    @Test(
        arguments: [
            ("identity.link.request.v1", "link"), ("identity.user.create.v1", "user"), ("identity.link.v1", nil),
            ("link.request", nil), ("", nil), ("other.link.request.v1", nil), ("identity..request.v1", nil),
        ] as [(String, String?)]) func services(_ type: String, _ service: String?)
    {
        #expect(CommandType.service(of: type) == service)
    }

    @Test func partitionKeys() { #expect(partitionKey(app: "demo", subject: "a/b") == "demo/a/b") }
}
