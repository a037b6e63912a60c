// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto

/// What to do with secrets of the apps file that are short, or that everybody knows (`IDENTITYBUS_WEAK_SECRETS`).
public enum WeakSecrets: String, Sendable, CaseIterable {
    /// One line in the log for each.
    case warn
    /// The file is refused, but for the demo apps with their own, published secrets. What the container image says.
    case refuse
}

/// A secret of the apps file and what it is for.
struct SecretUse {
    enum Purpose {
        /// Of a key of `keys`.
        case apiKey
        case appSecret, tokenSecret
        /// Of a key of `verification.keys`.
        case verificationKey
        case identityTokenSecret

        /// Whether two apps may not share one. A token would count in both.
        var isOneAppsOnly: Bool { self == .verificationKey || self == .identityTokenSecret }

        /// Whether strangers can try to guess it from what it signs or opens. An app secret is in every copy of the
        /// app; its length makes it no better.
        var isWeakWhenShort: Bool { self != .appSecret }
    }

    var app: String
    /// Names the app and the member.
    var place: String
    var purpose: Purpose
    var secret: [UInt8]

    /// Bytes that a secret should have: as many as an HMAC-SHA256 has.
    static let goodLength = 32

    /// Refuses a secret with two purposes, and a verification secret of two apps: what one of them makes would be taken
    /// for the other's. The line names both places and no secret.
    static func check(_ uses: [SecretUse]) throws(AppsFile.Problem) {
        var seen: [[UInt8]: SecretUse] = [:]
        for use in uses {
            guard let other = seen[use.secret] else {
                seen[use.secret] = use
                continue
            }
            if other.purpose != use.purpose {
                throw AppsFile.Problem(
                    "\(use.place): has the same secret as \(other.place); each purpose needs a secret of its own")
            }
            if use.purpose.isOneAppsOnly, other.app != use.app {
                throw AppsFile.Problem(
                    "\(use.place): has the same secret as \(other.place); each app needs secrets of its own")
            }
        }
    }

    /// What is wrong with the secret itself, in one line that does not show it.
    var weakness: String? {
        if let owner = PublishedSecrets.app(of: secret) {
            if owner == app { return nil }
            return "\(place): has a secret that is published with IdentityBus, so everybody knows it"
        }
        guard purpose.isWeakWhenShort, secret.count < Self.goodLength else { return nil }
        return "\(place): the secret has \(secret.count) bytes, fewer than \(Self.goodLength); "
            + "make one with: openssl rand -hex 32"
    }

    var isOfDemo: Bool { PublishedSecrets.app(of: secret) == app }
}

/// The secrets of the demo apps in `config/apps.yaml`, which everybody can read, by their SHA-256.
enum PublishedSecrets {
    /// - Returns: the demo app that the secret was published for.
    static func app(of secret: [UInt8]) -> String? {
        apps[SHA256.hash(data: secret).prefix(8).hex]
    }

    /// By the first 16 hex digits.
    private static let apps = [
        "b8bcb5065a231e61": "demo",
        "157b635ddeec1e2a": "demo",
        "bb65d8b5761d7e78": "demo",
        "b82fe3a64131dd25": "demo",
        "81ba29a3c94c9cf4": "demo",
        "d1c72eae9f230339": "support",
        "caf320e2c13da708": "support",
        "08c0919984107d85": "support",
        "206730d3cb678cc0": "support",
        "deae50e904164a7d": "support",
        "3ef09339ef8a4b48": "linked",
        "1ae534e317b675da": "isolated",
        "82a693d78dd4d81a": "best",
        "535f691e8b6c8258": "other",
        "8a694200f4c5addc": "other",
        "b04878c769f4baab": "other",
    ]
}
