// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import WireJSON

@testable import Link
@testable import Runtime

/// Random commands over few installs, external ids and persons, so that they meet.
struct RandomCommands: RandomSource {
    var random: SplitMix64
    /// Lists are drawn apart: the other commands of a seed stay as they were.
    private var lists: SplitMix64
    private var count = 0
    /// The erasures so far.
    private var erasures: [Step] = []

    /// Who does not come back: drawn apart.
    private var leaving: SplitMix64

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        lists = SplitMix64(seed: ~seed)
        leaving = SplitMix64(seed: seed ^ 0x5A5A)
    }

    /// Between two commands, and for how long an external id is held that was changed, in milliseconds: support may end that
    /// from the ninth command on.
    static let step: Int64 = 7000
    static let hold: Int64 = 120_000
    static let apps =
        Array(repeating: AppSettings(id: Fixture.app.id, linking: .init(hold: hold)), count: 18)
        + [AppSettings(id: Fixture.otherApp.id, linking: .init(hold: hold)), Fixture.unlinkedApp]
    static let externalIDs: [ExternalID] = [
        "anna", "anna", "anna", "anna", "bert", "bert", "bert", "Anna", "Ren\u{e9}", "Rene\u{301}", "null", "0-0",
    ]

    struct Step: Sendable {
        var command: LinkCommand
        var context: DecisionContext
    }

    /// - Parameters:
    ///   - users: the user ids there are; one of them, or an unknown one, is what an erasure names.
    ///   - forwards: the ids of what was sent to other services; one of them is what an answer names.
    mutating func next(users: [UserID], forwards: [CommandID]) -> Step {
        count += 1
        // Now and then a command that the inbox has forgotten comes again under its old id: an erasure as it was, any
        // other as a new one.
        if Int.random(in: 0..<40, using: &random) == 0, let old = erasures.suffix(3).randomElement(using: &random) {
            return old
        }
        let app = pick(Self.apps)
        var command =
            Int.random(in: 0..<10, using: &lists) == 0 ? .importUsers(list(users)) : command(users, forwards)
        if Int.random(in: 0..<10, using: &leaving) == 0 {
            command = .expire(
                ExpirePerson(
                    installId: InstallID("i\(Int.random(in: 1...6, using: &leaving))"),
                    userId: users.randomElement(using: &leaving) ?? "nobody"))
        }
        let isOld = Int.random(in: 0..<4, using: &random) == 0 && !command.erases
        let number = isOld ? Int.random(in: 1...count, using: &random) : count
        if case .establish(var code) = command, Bool.random(using: &leaving) {
            let age = Int64.random(in: 0..<30, using: &leaving) * Self.step
            code.askedAt = Timestamp(milliseconds: Int64(count) * Self.step - age)
            command = .establish(code)
        }
        // Some come late.
        let lag = Int64(pick([0, 0, 1, 4, 6, 20, 60, 210])) * 1000
        let now = Int64(count) * Self.step
        let step = Step(
            command: command,
            context: Fixture.context(
                app, id: CommandID("c\(number)"), moment: Moment(milliseconds: now - lag), now: now))
        // By its external id it would name somebody else by now.
        if command.erases, command.externalID == nil { erasures.append(step) }
        return step
    }

    private mutating func command(_ users: [UserID], _ forwards: [CommandID]) -> LinkCommand {
        let install = InstallID("i\(Int.random(in: 1...6, using: &random))")
        let externalID = pick(Self.externalIDs)
        let device = Device(
            kind: pick(Device.Kind.allCases), platform: "p",
            model: Bool.random(using: &random) ? "m" : nil)
        switch Int.random(in: 0..<82, using: &random) {
        case 0..<24: return .request(LinkRequest(installId: install, externalId: externalID))
        case 24..<34:
            return .registerInstall(
                RegisterInstall(installId: install, device: device, user: Bool.random(using: &random) ? .new : .none))
        case 34..<46:
            return .establish(
                EstablishLink(
                    installId: install, device: device, externalId: externalID,
                    mode: Bool.random(using: &random) ? .create : .linkExistingUser))
        case 46, 47: return .query(QueryInstall(installId: install))
        case 48..<54:
            let causes: [DetachInstall.Cause] = [.creationFailed, .creationFailed, .reset, .leftover]
            return .detachInstall(DetachInstall(installId: install, cause: pick(causes)))
        case 54..<58:
            let statuses: [InstallStatus] = [.enabled, .enabled, .enabled, .disabled, .disabled, .deleted]
            return .setInstallStatus(
                SetInstallStatus(installId: install, status: pick(statuses)))
        case 58, 59:
            let byUser = Int.random(in: 0..<3, using: &random) > 0
            let byExternalID = !byUser || Bool.random(using: &random)
            return .forget(
                ForgetPerson(
                    userId: byUser ? users.randomElement(using: &random) ?? "nobody" : nil,
                    externalId: byExternalID ? externalID : nil,
                    // Some were erased there while a person of that name was made here.
                    erasedAt: pick([nil, Timestamp(milliseconds: Int64(count) * Self.step - pick([0, 20, 60]) * 1000)]))
            )
        case 60..<69:
            // The newest are the likeliest: most of the others are answered.
            let forward = forwards.suffix(4).randomElement(using: &random) ?? "unknown"
            let parts: [ErasureCertificate.Counts] = [
                .init(user: .init(installs: 2, codes: 1)),
                .init(sync: .init(profiles: 1), verification: .init(sessions: 3)), .init(), .init(),
            ]
            let outcomes = parts.map { ForgetAnswer.Outcome.done(.part($0)) } + [.refused("why"), .pending]
            return .answered(ForgetAnswer(forward: forward, outcome: pick(outcomes)))
        case 73..<82: return support(install, externalID, users)
        case 69: return .getErasure(GetUserErasure(userId: users.randomElement(using: &random) ?? "nobody"))
        default:
            return .eraseUser(EraseUser(userId: users.randomElement(using: &random) ?? "nobody"))
        }
    }

    private mutating func support(
        _ install: InstallID, _ externalID: ExternalID, _ users: [UserID]
    ) -> LinkCommand {
        let user = users.randomElement(using: &random) ?? "nobody"
        switch Int.random(in: 0..<13, using: &random) {
        case 0, 1:
            let queries = [
                GetLinkedUser(userId: user), GetLinkedUser(externalId: externalID),
                GetLinkedUser(installId: install),
                GetLinkedUser(userId: user, after: "i3"),
            ]
            return .getUser(pick(queries))
        case 2, 3: return .makeActive(MakeInstallActive(installId: install, author: "a", reason: "lost"))
        case 4..<7: return .unlink(UnlinkUser(userId: user, author: "a", reason: "wrong"))
        case 10..<13:
            // Two profiles of one person, whose words come in any order.
            return .restricted(
                UserRestrictionChanged(
                    userId: user, mpid: pick([.max, MPID(7) ?? .max]), isRestricted: chance(60),
                    changedAt: Timestamp(milliseconds: Int64(count) * Self.step - pick([0, 0, 0, 20_000]))))
        default:
            let new = pick(Self.externalIDs)
            let byUser = Bool.random(using: &random)
            return .changeExternalID(
                ChangeExternalID(
                    userId: byUser ? user : nil, externalId: byUser ? nil : externalID, newExternalId: new,
                    endHold: chance(30) ? true : nil, author: "a", reason: "typo"))
        }
    }

    // MARK: Lists

    /// Few, so that they come again: most with what the other commands know.
    private static let listed = (1...4).map { UserID("00000000000000000000000\($0)") }
    private var recent: [ImportedUser] = []

    private mutating func list(_ users: [UserID]) -> ImportUsers {
        func one<Value>(_ values: [Value]) -> Value? { values.randomElement(using: &lists) }
        func may(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &lists) < percent }
        let elements = (0..<Int.random(in: 1...4, using: &lists)).map { _ -> ListElement<ImportedUser> in
            if may(5) { return .unreadable(["userId": 1], "not this") }
            if may(20), let again = one(recent) { return .read(again) }
            let ids = Self.listed + (may(20) ? users : [])
            var numbers = Set(
                (0..<Int.random(in: 0...2, using: &lists)).map { _ in Int.random(in: 4...14, using: &lists) })
            if may(3) { numbers.insert(1) }
            var user = ImportedUser(userId: one(ids) ?? "none", externalId: may(70) ? one(Self.externalIDs) : nil)
            if may(20) {
                user.createdAt = Timestamp(milliseconds: Int64(count) * Self.step + (may(20) ? 4_000_000 : -4_000_000))
            }
            user.installs = numbers.sorted().map { number in
                ImportedUser.Install(
                    installId: InstallID("i\(number)"),
                    device: Device(kind: one(Device.Kind.allCases) ?? .phone, platform: "p"),
                    isActive: may(50) ? may(60) : nil,
                    status: may(20) ? one(InstallStatus.allCases) : nil)
            }
            if user.installs?.isEmpty == true, may(50) { user.installs = nil }
            recent = recent.suffix(5) + [user]
            return .read(user)
        }
        return ImportUsers(users: elements, upsert: may(50) ? true : nil, events: may(10) ? false : nil)
    }
}
