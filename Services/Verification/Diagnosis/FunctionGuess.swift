// SPDX-License-Identifier: Apache-2.0

import Crypto

/// A function that a backend may have used. All but the first are mistakes; they are computed only to name them.
struct FunctionGuess: Sendable {
    var mistake: String?
    var compute: @Sendable ([UInt8], SymmetricKey) -> [UInt8]

    static let all = [
        FunctionGuess { Array(HMAC<SHA256>.authenticationCode(for: $0, using: $1)) },
        FunctionGuess(mistake: "wrong function: HMAC-SHA512; use HMAC-SHA256") {
            Array(HMAC<SHA512>.authenticationCode(for: $0, using: $1))
        },
        FunctionGuess(mistake: "wrong function: HMAC-SHA1; use HMAC-SHA256") {
            Array(HMAC<Insecure.SHA1>.authenticationCode(for: $0, using: $1))
        },
        FunctionGuess(mistake: "wrong function: secret and text were exchanged") {
            Array(HMAC<SHA256>.authenticationCode(for: bytes(of: $1), using: SymmetricKey(data: $0)))
        },
        FunctionGuess(mistake: "wrong function: SHA-256 of secret and text; use HMAC-SHA256") {
            Array(SHA256.hash(data: bytes(of: $1) + $0))
        },
        FunctionGuess(mistake: "wrong function: SHA-256 of text and secret; use HMAC-SHA256") {
            Array(SHA256.hash(data: $0 + bytes(of: $1)))
        },
        FunctionGuess(mistake: "wrong function: SHA-256 without the secret; use HMAC-SHA256") { text, _ in
            Array(SHA256.hash(data: text))
        },
    ]

    private static func bytes(of key: SymmetricKey) -> [UInt8] { key.withUnsafeBytes { Array($0) } }
}
