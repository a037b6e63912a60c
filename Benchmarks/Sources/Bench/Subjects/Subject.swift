// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// What is measured.
enum Subject: String, CaseIterable, ExpressibleByArgument {
    case link, user, sync, verification, gateway

    /// The processes that it takes; the one under test is the first.
    var services: [String] {
        switch self {
        case .link: ["link"]
        case .user: ["user", "link"]
        case .sync: ["sync"]
        case .verification: ["verification", "sync"]
        case .gateway: ["gateway", "link"]
        }
    }

    /// The app's sections in the apps file.
    var settings: [String] {
        switch self {
        case .link, .gateway: []
        case .user: ["sdk: {appSecret: \(UserWorkload.appSecret)}"]
        case .sync: [SyncWorkload.settings]
        case .verification: VerificationWorkload.settings
        }
    }

    /// Commands a second and replica that the product aims at.
    func aim(_ engine: Engine) -> Double? {
        switch (self, engine) {
        case (.link, .sqlite): 20_000
        case (.link, .postgresql), (.sync, .sqlite): 10_000
        case (.sync, .postgresql): 5000
        case (.user, _), (.verification, _), (.gateway, _): nil
        }
    }

    var defaultCommands: Int {
        switch self {
        case .link, .sync: 60_000
        case .verification: 30_000
        case .user, .gateway: 10_000
        }
    }

    /// Commands a second at which the latency is measured.
    var defaultRate: Int {
        switch self {
        case .link, .sync: 500
        case .user: 100
        case .verification: 200
        case .gateway: 1000
        }
    }

    /// Milliseconds.
    var latencyAim: (p50: Double, p99: Double)? {
        switch self {
        case .link: (5, 30)
        case .user: (15, 60)
        case .sync, .verification, .gateway: nil
        }
    }
}
