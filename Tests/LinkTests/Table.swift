// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing

@testable import Link
@testable import Runtime

/// One line of a table of rules:
///
///     13 | i1, i2 u1=anna | request i1 anna -> i1 active u1=anna, i2 deactivated u1=anna; linked i1, superseded i2
///
/// The row of the page; what is given; the command; what comes of it: the reason of a refusal, or the installs that are
/// different afterwards, and the events.
///
/// An install is `i1`, then whatever is not usual about it: `tablet` or `other` (a phone), `disabled` or `deleted`
/// (enabled), `active`, `standby`, `deactivated`, `active-once-enabled` (active with a person), `first` (its person came to life
/// here), `closed` (without a person: no linker is awaited), `u1` or `u1=anna` (its person), `over:i2` (it took the person
/// over from i2 as that stands; `over:i2/9`, as it stood in version 9; `over:i2*`, when that was suspended), `of other`
/// (of app demo). A person without an install is `u1=anna`; one that the command brings to life is `new`. What is left
/// of `over` is not written down.
struct Row: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var given: String
    var command: String
    var expected: String

    static func rows(_ table: String) -> [Row] {
        table.split(separator: "\n").map { line in
            let columns = line.split(separator: "|").map(\.trimmed)
            let parts = columns.last?.split(separator: " -> ").map(\.trimmed) ?? []
            guard columns.count == 3, parts.count == 2 else { preconditionFailure("no row: \(line)") }
            return Row(
                testDescription: "\(columns[0]): \(parts[0])", given: columns[1], command: parts[0], expected: parts[1])
        }
    }

    func check() throws {
        let before = LinkState(given)
        let (command, app) = LinkCommand.read(self.command)
        let decision = Fixture.decide(command, before, Fixture.context(app))
        guard expected.contains(where: \.isLowercase) else {
            let reason = try #require(ReasonCode(rawValue: expected))
            #expect(decision.answer == .rejected(reason))
            #expect(decision.changes.isEmpty && decision.forwards.isEmpty)
            let installID = try #require(command.installID)
            #expect(decision.told == (command.links ? [LinkRefused(installId: installID, reason: reason)] : []))
            return
        }
        let after = before.after(decision)
        let parts = expected.split(separator: ";").map(\.trimmed)
        #expect(Self.changes(before, after, command) == parts[0])
        #expect(decision.changes.isEmpty == (expected == "unchanged"))
        try checkAnswer(decision.answer, command, before, after)
        let told = parts.dropFirst().flatMap { $0.split(separator: ",").map(\.trimmed) }
        #expect(try decision.told == told.map { try event($0, command, before, after) })
        for install in after.installs.values {
            let old = before.installs[install.key]
            let isSame =
                old?.userID == install.userID && old?.status ?? .enabled == install.status
                && old?.activity ?? .none == install.activity
                && old.flatMap(before.externalID) == after.externalID(install)
            #expect(install.version == (isSame ? 0 : 1))
        }
    }

    /// The installs that are different, the command's first.
    private static func changes(_ before: LinkState, _ after: LinkState, _ command: LinkCommand) -> String {
        let changed = after.installs.values.filter { $0 != before.installs[$0.key] }.sorted {
            ($0.id == command.installID ? 0 : 1, $0.id) < ($1.id == command.installID ? 0 : 1, $1.id)
        }
        let texts = changed.map { after.text($0, before) }
        return texts.isEmpty ? "unchanged" : texts.joined(separator: ", ")
    }

    private func checkAnswer(
        _ answer: Answer, _ command: LinkCommand, _ before: LinkState, _ after: LinkState
    ) throws {
        let install = try #require(command.installID.flatMap(after.install))
        guard command.links else {
            let result = InstallResult(
                installId: install.id, appId: install.app, userId: install.userID,
                externalId: after.externalID(install), status: install.status, isActive: install.activity == .active,
                inactiveBecause: Self.reason(install), isUsersFirst: install.isUsersFirst, version: install.version)
            #expect(answer == .install(result))
            return
        }
        let userID = try #require(install.userID)
        let result = LinkResult(
            userId: userID, installId: install.id, isActive: install.activity == .active,
            personCreated: before.person(userID: userID) == nil, version: install.version)
        #expect(answer == .link(result))
        let externalID = try #require(command.externalID)
        #expect(after.person(app: install.app, externalID: externalID)?.userID == userID)
    }

    /// The event that two words stand for, as the states before and after say it.
    private func event(
        _ words: String, _ command: LinkCommand, _ before: LinkState, _ after: LinkState
    ) throws -> AnyHashable {
        let parts = words.split(separator: " ").map { String($0) }
        let install = try #require(after.install(InstallID(parts[1])))
        let was = before.installs[install.key]
        switch parts[0] {
        case "registered":
            return InstallRegistered(
                installId: install.id, device: install.device, userId: command.links ? was?.userID : install.userID)
        case "linked":
            let userID = try #require(install.userID)
            let mine = after.installs(of: userID)
            let deactivated = mine.filter { install in
                install.activity == .deactivated
                    && before.install(install.id).map { $0.activity != .deactivated } ?? false
            }
            return Linked(
                installId: install.id, externalId: try #require(command.externalID), userId: userID,
                personCreated: before.person(userID: userID) == nil,
                activeInstallId: try #require(mine.first { $0.activity == .active }).id,
                deactivatedInstallIds: deactivated.map(\.id), version: install.version,
                linkedAt: after.person(userID: userID)?.linkedAt.map(Timestamp.init(milliseconds:)))
        case "superseded", "status", "restored":
            return InstallStatusChanged(
                installId: install.id, status: install.status, isActive: install.activity == .active,
                userId: install.userID, isLinked: after.externalID(install) != nil,
                cause: try #require(.init(rawValue: parts[0] == "status" ? "command" : parts[0])),
                inactiveBecause: Self.reason(install), version: install.version)
        case "detached":
            return InstallDetached(
                installId: install.id, userId: try #require(was?.userID), version: install.version)
        default: preconditionFailure("no event: \(words)")
        }
    }

    /// L52.
    private static func reason(_ install: Install) -> InactiveBecause? {
        switch (install.status, install.activity) {
        case (_, .none), (_, .active): nil
        case (.disabled, _), (.deleted, _): .disabled
        case (.enabled, .standby): .waitsForPhone
        case (.enabled, _): .superseded
        }
    }
}

extension LinkState {
    /// Reads what is given.
    init(_ text: String) {
        self.init()
        for item in text.split(separator: ",").map(\.trimmed) where item != "-" {
            var words = item.split(separator: " ").map { String($0) }
            var app = Fixture.app.id
            if let place = words.firstIndex(of: "of") {
                app = AppID(words[place + 1])
                words.removeSubrange(place...)
            }
            var install = Install(id: InstallID(words[0]), app: app, device: Fixture.device(.phone), isOpen: true)
            for word in words where word.hasPrefix("u") {
                let names = word.split(separator: "=", maxSplits: 1).map { String($0) }
                apply(
                    .person(
                        Fixture.person(
                            UserID(names[0]), names.count == 2 ? ExternalID(names[1]) : nil, app: app)))
                (install.userID, install.activity, install.isOpen) = (UserID(names[0]), .active, false)
            }
            guard !words[0].hasPrefix("u") else { continue }
            let isLinked = install.userID != nil && item.contains("=")
            install.turn = isLinked ? nil : Moment(milliseconds: 0)
            for word in words where word.hasPrefix("over:") {
                let parts = word.dropFirst("over:".count).split(whereSeparator: { "/*".contains($0) })
                install.superseded.append(
                    Install.Superseded(
                        installID: InstallID(String(parts[0])), version: parts.count == 2 ? Int64(parts[1]) ?? 0 : 0,
                        wasSuspended: word.hasSuffix("*")))
            }
            for word in words.dropFirst() where !word.hasPrefix("u") {
                if let kind = Device.Kind(rawValue: word) { install.device = Fixture.device(kind) }
                if let status = InstallStatus(rawValue: word) { install.status = status }
                if let activity = Install.Activity(rawValue: word) { install.activity = activity }
                if word == "closed" { (install.isOpen, install.turn) = (false, nil) }
            }
            apply(.install(install))
        }
    }

    func externalID(_ install: Install) -> ExternalID? { install.userID.flatMap { person(userID: $0)?.externalID } }

    /// The install as the tables write it.
    func text(_ install: Install, _ before: LinkState) -> String {
        var words = [install.id.text]
        if install.device.kind != .phone { words.append(install.device.kind.rawValue) }
        if install.status != .enabled { words.append(install.status.rawValue) }
        if install.activity != .none { words.append(install.activity.rawValue) }
        if install.isUsersFirst { words.append("first") }
        if install.userID == nil, !install.isOpen { words.append("closed") }
        if let userID = install.userID {
            let name = before.person(userID: userID) == nil ? "new" : userID.text
            words.append(name + (externalID(install).map { "=\($0)" } ?? ""))
        }
        if install.app != Fixture.app.id { words.append("of \(install.app)") }
        return words.joined(separator: " ")
    }
}

extension LinkCommand {
    /// Reads a command: `request i1 anna`, `create i1 tablet anna`, `link-existing-user i1 anna`, `register i1 tablet
    /// none`, `query i1`, `detach i1`, `fail i1` (a creation did), `set i1 disabled`; `in APP` at the end, of another app than demo. An external id
    /// with white space stands in quotes.
    fileprivate static func read(_ text: String) -> (LinkCommand, AppSettings) {
        var text = text
        var app = Fixture.app
        for other in [Fixture.otherApp, Fixture.unlinkedApp] where text.hasSuffix(" in \(other.id)") {
            text.removeLast(" in \(other.id)".count)
            app = other
        }
        var words = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false).map { String($0) }
        let verb = words.removeFirst()
        let install = InstallID(words.removeFirst())
        var rest = words.joined(separator: " ")
        var device = Fixture.device(.phone)
        for kind in Device.Kind.allCases where rest.hasPrefix("\(kind.rawValue) ") {
            rest.removeFirst(kind.rawValue.count + 1)
            device = Fixture.device(kind)
        }
        if rest.hasPrefix("\"") { rest = String(rest.dropFirst().dropLast()) }
        let command: LinkCommand? =
            switch verb {
            case "request": Fixture.request(install, ExternalID(rest))
            case "create", "link-existing-user":
                EstablishLink.Mode(rawValue: verb).map {
                    .establish(
                        EstablishLink(installId: install, device: device, externalId: ExternalID(rest), mode: $0))
                }
            case "register":
                RegisterInstall.User(rawValue: rest).map {
                    .registerInstall(RegisterInstall(installId: install, device: device, user: $0))
                }
            case "query": .query(QueryInstall(installId: install))
            case "detach": .detachInstall(DetachInstall(installId: install, cause: .reset))
            case "fail": .detachInstall(DetachInstall(installId: install, cause: .creationFailed))
            case "set":
                InstallStatus(rawValue: rest).map {
                    .setInstallStatus(SetInstallStatus(installId: install, status: $0))
                }
            default: nil
            }
        guard let command else { preconditionFailure("no command: \(text)") }
        return (command, app)
    }

    /// Whether it wants to link an install.
    fileprivate var links: Bool {
        switch self {
        case .request, .establish: true
        default: false
        }
    }
}

extension Substring {
    fileprivate var trimmed: String {
        String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
