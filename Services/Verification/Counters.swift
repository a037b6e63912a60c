// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
import Storage

/// What verifications are counted by, within an app. Without a reason the login passed (V52).
public struct Tally: Sendable, Hashable, Comparable {
    public var method: VerificationMethod
    public var keyID: KeyID?
    public var reason: ReasonCode?

    public init(method: VerificationMethod, keyID: KeyID? = nil, reason: ReasonCode? = nil) {
        self.method = method
        self.keyID = keyID
        self.reason = reason
    }

    /// The order in which tallies are written and told.
    public static func < (left: Tally, right: Tally) -> Bool {
        (left.method.rawValue, left.reason?.rawValue ?? "", left.keyID ?? "")
            < (right.method.rawValue, right.reason?.rawValue ?? "", right.keyID ?? "")
    }
}

/// How often, and when last.
public struct Count: Sendable, Hashable {
    public var count: Int64
    public var lastUsed: Timestamp

    public init(count: Int64, lastUsed: Timestamp) {
        self.count = count
        self.lastUsed = lastUsed
    }

    static func + (left: Count, right: Count) -> Count {
        Count(count: left.count + right.count, lastUsed: max(left.lastUsed, right.lastUsed))
    }
}

extension VerificationDecider {
    func usage() -> Decision {
        let counts = state.usage(app: context.app.id).sorted { $0.key < $1.key }
            .map { tally, count in
                VerificationUsageResult.Count(
                    method: tally.method, keyId: tally.keyID, reason: tally.reason, count: count.count,
                    lastUsed: count.lastUsed)
            }
        return Decision(.succeeded(VerificationUsageResult(counts: counts)))
    }
}
