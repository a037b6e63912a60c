// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import TestKit

@testable import Apps
@testable import Verification

/// What decides who a verified login finds, in every combination: the apps that an operator could write.
struct AppShape: CustomStringConvertible {
    var strategy: SyncStrategy
    var mode: VerificationSettings.Mode
    var fields: VerificationSettings.SignedFields
    /// Members of the section `sync`, beside the strategy.
    var members: [String]

    /// Types that find people, in both orders and behind a device's; what logs in; what is immutable, unique and joined.
    private static let variants: [[String]] = {
        let priorities: [[String]] = [
            [], ["priority: [customerid, email, other, device_application_stamp, ios_idfv]"],
            ["priority: [email, customerid, other, device_application_stamp, ios_idfv]"],
            ["priority: [ios_idfv, device_application_stamp, other, email, customerid]"],
        ]
        let people = ["[customerid]", "[email]", "[customerid, email]"]
        let others = ["[other]", "[customerid, email, ios_idfv]", "[customerid, device_application_stamp]"]
        let rest = [
            "immutableIdentities: [customerid]", "immutableIdentities: [email]",
            "immutableIdentities: [customerid, email]", "joinByLowerRank: true", "uniqueIdentities: []",
            "caseInsensitiveIdentities: [email]",
        ]
        var variants: [[String]] = []
        for priority in priorities {
            variants.append(priority)
            for login in people + others { variants.append(priority + ["loginIdentities: \(login)"]) }
        }
        for login in [people[0], people[2]] {
            for member in rest { variants.append(["loginIdentities: \(login)", member]) }
        }
        return variants
    }()

    private static let all: [AppShape] = SyncStrategy.all.flatMap { strategy in
        // These two have lists of their own.
        let isFixed = strategy == .default || strategy == .bestMatch
        return VerificationSettings.Mode.allCases.flatMap { mode in
            VerificationSettings.SignedFields.allCases.flatMap { fields in
                // With nobody to verify, only what logs in makes a difference.
                variants.prefix(isFixed ? 2 : mode == .off ? 7 : variants.count).map {
                    AppShape(strategy: strategy, mode: mode, fields: fields, members: $0)
                }
            }
        }
    }

    /// What the loader says of each.
    static let loaded: [(shape: AppShape, result: Result<AppSettings, any Error>)] = all.map { shape in
        (shape, Result { try shape.load() })
    }

    /// Those that it takes.
    static let accepted: [(shape: AppShape, app: AppSettings)] = loaded.compactMap { shape, result in
        (try? result.get()).map { (shape, $0) }
    }

    /// A device's identity makes people known, or finds somebody before theirs do.
    var believesDevices: Bool {
        members.contains { $0.hasPrefix("login") && $0.contains("_") || $0.hasPrefix("priority: [ios_idfv") }
    }

    var description: String {
        let sync = (["strategy: \(strategy.name)"] + members).joined(separator: ", ")
        return "{sync: {\(sync)}, verification: {mode: '\(mode.rawValue)', signedFields: \(fields.rawValue)}}"
    }

    /// As the loader reads it.
    private func load() throws -> AppSettings {
        struct NoFile: Error {}
        let sync = (["strategy: \(strategy.name)"] + members).joined(separator: ", ")
        let text = """
            apps: [{id: support, sync: {\(sync)}, verification: {mode: '\(mode.rawValue)', \
            signedFields: \(fields.rawValue), keys: [{id: k1, secret: \(Fixture.secret)}], \
            identityTokenSecrets: [{id: j1, secret: \(Self.jwtSecret)}]}}]
            """
        guard let app = try AppsFile.parse(text, readSecret: { _ in throw NoFile() })["support"] else { throw NoFile() }
        return app
    }

    static let jwtSecret = "a_secret_for_identity_tokens_0123456789"
}

/// How somebody says who they are.
struct Way: CustomStringConvertible {
    enum Proof: CaseIterable { case authToken, identityToken }

    var proof: Proof
    var hasUserID: Bool
    var hasEmail: Bool

    static let all: [Way] = Proof.allCases.flatMap { proof in
        [(true, true), (true, false), (false, true)].map { Way(proof: proof, hasUserID: $0, hasEmail: $1) }
    }

    var description: String {
        "\(proof) of "
            + [hasUserID ? "the user id" : nil, hasEmail ? "the e-mail" : nil].compactMap(\.self)
            .joined(separator: " and ")
    }

    /// Whether it is what the app's backend signs.
    func isSigned(_ fields: VerificationSettings.SignedFields) -> Bool {
        guard proof == .authToken else { return true }
        return switch fields {
        case .delimited: hasUserID && hasEmail
        case .userId: hasUserID
        case .email: hasEmail
        case .vendor: true
        }
    }

    /// Whether whoever comes this way must be somebody: by what `signedFields` is about.
    func names(_ fields: VerificationSettings.SignedFields) -> Bool {
        isSigned(fields) && (fields == .email ? hasEmail : hasUserID)
    }

    /// A genuine login.
    func login(
        _ person: String, on device: DeviceID, _ fields: VerificationSettings.SignedFields
    ) -> VerificationCommand {
        let email = "\(person)@x.io"
        guard proof == .authToken else {
            let identities = [
                hasUserID ? #"{"identifier":"uid","value":"\#(person)"}"# : nil,
                hasEmail ? #"{"identifier":"email","value":"\#(email)"}"# : nil,
            ].compactMap(\.self).joined(separator: ",")
            let token = Fixture.jwt(Fixture.payload("[\(identities)]"), secret: AppShape.jwtSecret)
            return .loginIdentity(VerificationLoginIdentity(deviceId: device, identityToken: token))
        }
        let message =
            switch fields {
            case .delimited: "\(person)\n\(email)"
            case .userId: person
            case .email: email
            case .vendor: (hasUserID ? person : "") + (hasEmail ? email : "")
            }
        return .login(
            VerificationLogin(
                deviceId: device, userId: hasUserID ? person : nil, userEmail: hasEmail ? email : nil,
                userAuthToken: Fixture.token(message)))
    }
}
