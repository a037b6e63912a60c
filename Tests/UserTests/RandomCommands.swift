// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import TestKit

@testable import Link
@testable import Runtime
@testable import User

/// Random commands over few installs, external ids and codes, so that they meet.
struct RandomCommands {
    enum Command {
        case user(UserCommand)
        case link(LinkCommand)
        /// A user, by its place among those there are.
        case erase(Int)
        /// The clock moves by seven minutes: past a code's or a linker's end at the second time.
        case wait
    }

    static let wait: Int64 = 7 * Fixture.minute

    var random: SplitMix64
    /// The codes that were given out.
    var codes: [String] = []

    init(seed: UInt64) { random = SplitMix64(seed: seed ^ 0x5eed) }

    private mutating func pick<Value>(_ values: [Value]) -> Value {
        values[Int.random(in: values.indices, using: &random)]
    }

    mutating func next() -> (command: Command, app: AppSettings) {
        let app = pick(Array(repeating: Fixture.app, count: 16) + [Fixture.otherApp, Fixture.unlinkedApp])
        let install = InstallID("i\(Int.random(in: 1...4, using: &random))")
        let external = pick(["anna", "anna", "bert", "carl", "null"])
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<18: return (.user(.requestAuthCode(RequestAuthCode(externalId: ExternalID(external)))), app)
        case 18..<40: return (.user(.create(create(install))), app)
        case 40..<52:
            let isByCode = Int.random(in: 0..<3, using: &random) > 0
            return (
                .user(
                    .link(
                        LinkUser(
                            installId: install, authCode: isByCode ? code() : nil, linking: isByCode ? nil : .linker))),
                app
            )
        case 52..<64:
            return (
                .user(
                    .confirmLink(ConfirmLink(installId: install, success: Int.random(in: 0..<4, using: &random) > 0))),
                app
            )
        case 64..<74: return (.user(.reset(ResetUser(installId: install))), app)
        case 74..<80: return (.user(.get(GetUser(installId: install))), app)
        case 80..<91: return (.link(.request(LinkRequest(installId: install, externalId: ExternalID(external)))), app)
        case 91..<94:
            let status = pick([InstallStatus.enabled, .enabled, .enabled, .disabled, .disabled, .deleted])
            return (.link(.setInstallStatus(SetInstallStatus(installId: install, status: status))), app)
        case 94..<97: return (.erase(Int.random(in: 0..<20, using: &random)), app)
        default: return (.wait, app)
        }
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
