// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Runtime
import Supervision

/// As whom the doctor looks: a service, or the gateway.
struct Role: Sendable, Hashable, ExpressibleByArgument, CaseIterable {
    let name: String
    /// `nil` for the gateway, which has no store.
    let service: (any CommandService.Type)?

    static let gateway = Role(name: "gateway", service: nil)
    static let allCases = services.map { Role(name: $0.name, service: $0) } + [gateway]

    private init(name: String, service: (any CommandService.Type)?) {
        self.name = name
        self.service = service
    }

    init?(argument: String) {
        guard let role = Self.allCases.first(where: { $0.name == argument }) else { return nil }
        self = role
    }

    static var allValueStrings: [String] { allCases.map(\.name) }

    /// Those that can run with these settings: with the gateway's keys alone, only the gateway.
    static func all(servedBy environment: [String: String]) -> [Role] {
        func isSet(_ name: String) -> Bool { environment[name] != nil || environment["\(name)_FILE"] != nil }
        return isSet("IDENTITYBUS_GATEWAY_KEYS") && !isSet("IDENTITYBUS_INTERNAL_KEY") ? [gateway] : allCases
    }

    static func == (left: Role, right: Role) -> Bool { left.name == right.name }

    func hash(into hasher: inout Hasher) { hasher.combine(name) }
}
