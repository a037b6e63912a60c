// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
import Storage

/// What verifications are counted by, within an app. Without a reason the login passed (V52).
public struct Tally: Sendable, Hashable {
    public var method: VerificationMethod
    public var keyID: String?
    public var reason: ReasonCode?

    public init(method: VerificationMethod, keyID: String? = nil, reason: ReasonCode? = nil) {
        self.method = method
        self.keyID = keyID
        self.reason = reason
    }

    public static func == (left: Tally, right: Tally) -> Bool {
        left.method == right.method && left.reason == right.reason
            && left.keyID.map { ExactText($0) } == right.keyID.map { ExactText($0) }
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(method)
        hasher.combine(reason)
        hasher.combine(keyID.map { ExactText($0) })
    }

    var order: [ExactText] {
        [ExactText(method.rawValue), ExactText(reason?.rawValue ?? ""), ExactText(keyID ?? "")]
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
        let counts = state.usage(app: context.app.id).sorted { $0.key.order.lexicographicallyPrecedes($1.key.order) }
            .map { tally, count in
                VerificationUsageResult.Count(
                    method: tally.method, keyId: tally.keyID, reason: tally.reason, count: count.count,
                    lastUsed: count.lastUsed.rfc3339)
            }
        return Decision(.succeeded(VerificationUsageResult(counts: counts)))
    }
}
