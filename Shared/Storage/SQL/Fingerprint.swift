// SPDX-License-Identifier: Apache-2.0

/// A short hash (FNV-1a, 64 bits) that is the same in every process. It notices accidents; it is no defence.
enum Fingerprint {
    static func of(_ parts: [String]) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for part in parts {
            for byte in part.utf8 {
                hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
            }
            // A byte that no UTF-8 text holds keeps ["ab", "c"] and ["a", "bc"] apart.
            hash = (hash ^ 0xff) &* 0x100_0000_01b3
        }
        return hash
    }
}
