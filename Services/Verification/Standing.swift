// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Crypto
import Runtime

/// What the rights of a session rest on. When that is gone, so are they.
public struct Standing: Sendable, Hashable {
    public enum Basis: Sendable, Hashable {
        /// A token that was made with this key, see ``VerificationSettings/Key/mark(_:)``.
        case key(mark: Int64)
        /// The app did not verify.
        case unchecked
        /// Let through by mode `report` or `off`, although nobody vouched.
        case unverified
    }

    public var basis: Basis
    /// As it is shown; a single `identityTokenSecret` has none.
    public var keyID: KeyID?
    /// When the login was decided. `nil`: it does not age.
    public var since: Timestamp?

    public init(_ basis: Basis, keyID: KeyID? = nil, since: Timestamp? = nil) {
        self.basis = basis
        self.keyID = keyID
        self.since = since
    }

    var state: VerificationState {
        switch basis {
        case .key: .verified
        case .unchecked: .unchecked
        case .unverified: .unverified
        }
    }
}

extension Standing.Basis {
    /// As it is stored: one number, so that gone ones are found between those that are not.
    var number: Int64 {
        switch self {
        case .unchecked: 0
        case .unverified: 1
        case .key(let mark): mark
        }
    }

    init(number: Int64) {
        switch number {
        case 0: self = .unchecked
        case 1: self = .unverified
        default: self = .key(mark: number)
        }
    }
}

extension VerificationSettings.Key {
    /// Tells the secret and what it is for, not the id: another secret under the same id is another key. 56 bits of an
    /// HMAC; every token that the key makes tells as much about the secret (V48).
    func mark(_ method: VerificationMethod) -> Int64 {
        let text = "identitybus verification key v1 \(method.rawValue)"
        let code = HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: secret)
        return code.prefix(7).reduce(Int64(0)) { $0 << 8 | Int64($1) } + 16
    }
}

extension VerificationSettings {
    /// The bases on which a session may stand now, in order.
    func standingBases(at now: Timestamp) -> [Int64] {
        var bases: [Standing.Basis] = mode == .enforce ? [] : [.unchecked, .unverified]
        bases += keys.filter { $0.isLive(at: now) }.map { .key(mark: $0.mark(.authToken)) }
        bases += identityTokenSecrets.filter { $0.isLive(at: now) }.map { .key(mark: $0.mark(.identityToken)) }
        return Set(bases.map(\.number)).sorted()
    }

    /// Why a session may not stand on this any longer.
    func reasonToEnd(_ standing: Standing, at now: Timestamp) -> SessionChanged.Reason? {
        if let sessionLifetime, let since = standing.since, since.milliseconds + sessionLifetime <= now.milliseconds {
            return .sessionExpired  // V44
        }
        guard !standingBases(at: now).contains(standing.basis.number) else { return nil }
        if case .key = standing.basis { return .keyGone }  // V42
        return .verificationRequired  // V43
    }
}
