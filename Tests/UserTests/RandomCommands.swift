// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import TestKit

@testable import Link
@testable import Runtime
@testable import User

/// Random commands over few installs, external ids and codes, so that they meet.
struct RandomCommands: RandomSource {
    enum Command {
        case user(UserCommand)
        /// Made by so many milliseconds before it is decided.
        case link(LinkCommand, late: Int64 = 0)
        /// A user, by its place among those there are.
        case erase(Int)
        case unlink(Int)
        /// The clock moves by seven minutes: past a code's or a linker's end at the second time.
        case wait

        /// Whether it is said to the link service.
        var isAboutLinks: Bool {
            switch self {
            case .link, .unlink: true
            case .user, .erase, .wait: false
            }
        }
    }

    static let wait: Int64 = 7 * Fixture.minute

    var random: SplitMix64
    /// The codes that were given out.
    var codes: [String] = []
    private var disabled: [(InstallID, AppSettings)] = []

    init(seed: UInt64) { random = SplitMix64(seed: seed ^ 0x5eed) }

    mutating func next() -> (command: Command, app: AppSettings) {
        let app = pick(Array(repeating: Fixture.app, count: 16) + [Fixture.otherApp, Fixture.unlinkedApp])
        let install = InstallID("i\(Int.random(in: 1...4, using: &random))")
        let external = pick(["anna", "anna", "bert", "carl", "null"])
        switch Int.random(in: 0..<108, using: &random) {
        case 100..<103:
            return (.link(.makeActive(MakeInstallActive(installId: install, author: "a", reason: "r"))), app)
        case 103..<106:
            let new = ExternalID(pick(["anna", "bert", "carl", "dora"]))
            return (
                .link(
                    .changeExternalID(
                        ChangeExternalID(
                            externalId: ExternalID(external), newExternalId: new, author: "a", reason: "r"))), app
            )
        case 106..<108: return (.unlink(Int.random(in: 0..<20, using: &random)), app)
        case 0..<18: return (.user(.requestAuthCode(RequestAuthCode(externalId: ExternalID(external)))), app)
        case 18..<43: return (.user(.create(create(install))), app)
        case 43..<56:
            let isByCode = Int.random(in: 0..<3, using: &random) > 0
            return (
                .user(
                    .link(
                        LinkUser(
                            installId: install, authCode: isByCode ? code() : nil, linking: isByCode ? nil : .linker))),
                app
            )
        case 56..<66:
            return (
                .user(
                    .confirmLink(
                        ConfirmLink(
                            installId: install, success: Int.random(in: 0..<4, using: &random) > 0,
                            externalId: pick([nil, nil, ExternalID(external)])))),
                app
            )
        case 66..<73: return (.user(.reset(ResetUser(installId: install))), app)
        case 73..<79: return (.user(.get(GetUser(installId: install))), app)
        case 79..<90:
            let late: Int64 = pick([0, 0, 0, 0, 4000, 6000, Self.wait + Fixture.minute])
            return (.link(.request(LinkRequest(installId: install, externalId: ExternalID(external))), late: late), app)
        case 90..<94: return status(of: install, app)
        case 94..<97: return (.erase(Int.random(in: 0..<20, using: &random)), app)
        default: return (.wait, app)
        }
    }

    /// What was disabled is enabled again half the time, before much else happens to its user.
    private mutating func status(of install: InstallID, _ app: AppSettings) -> (command: Command, app: AppSettings) {
        if let (install, app) = disabled.popLast(), Int.random(in: 0..<2, using: &random) > 0 {
            return (.link(.setInstallStatus(SetInstallStatus(installId: install, status: .enabled))), app)
        }
        let status = pick([InstallStatus.enabled, .disabled, .disabled, .disabled, .disabled, .deleted])
        if status == .disabled { disabled.append((install, app)) }
        return (.link(.setInstallStatus(SetInstallStatus(installId: install, status: status))), app)
    }

    private mutating func code() -> String {
        // The newest are the likeliest: of the others most are used.
        guard Int.random(in: 0..<10, using: &random) > 0 else { return "unknown" }
        return codes.suffix(6).randomElement(using: &random) ?? "unknown"
    }

    private mutating func create(_ install: InstallID) -> CreateUser {
        let device = pick([Fixture.phone, Fixture.phone, Fixture.tablet])
        switch Int.random(in: 0..<8, using: &random) {
        case 0: return CreateUser(installId: install, device: device, appSecret: Fixture.secret, linking: Linking.none)
        case 1, 2: return CreateUser(installId: install, device: device, appSecret: Fixture.secret, linking: .linker)
        case 3: return CreateUser(installId: install, device: device, appSecret: "wrong", linking: .linker)
        default: return CreateUser(installId: install, device: device, authCode: code())
        }
    }
}
