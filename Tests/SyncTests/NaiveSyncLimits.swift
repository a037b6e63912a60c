// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Runtime
@testable import Sync

/// How often somebody may ask (S65, S66): no bucket is kept, but every time from the beginning.
extension NaiveSyncModel {
    enum Asker: Hashable {
        case device(DeviceID)
        /// A login identity as it is compared.
        case login(Identity)
    }

    /// A token of each, or none of any.
    mutating func takeTokens(_ device: DeviceID?, _ ids: [Identity], now: Int64) throws(Refusal) {
        let limits = settings.throttle
        var askers: Set<Asker> = []
        if let device, limits.devicePerSecond > 0 {
            askers.insert(.device(device))
            if isEmpty(.device(device), limits.devicePerSecond, limits.deviceBurst, now) {
                throw Refusal(reason: .throttled)
            }
        }
        for id in ids where isLogin(id) && limits.loginPerSecond > 0 {
            askers.insert(.login(folded(id)))
            if isEmpty(.login(folded(id)), limits.loginPerSecond, limits.loginBurst, now) {
                throw Refusal(reason: .throttled)
            }
        }
        for asker in askers { asked[asker, default: []].append(now) }
    }

    /// Counted in thousandths, of which one comes each millisecond for every token a second.
    private func isEmpty(_ asker: Asker, _ perSecond: Int, _ burst: Int, _ now: Int64) -> Bool {
        let most = Int64(burst) * 1000
        var left = most
        var last = now
        for (place, time) in ((asked[asker] ?? []) + [now]).enumerated() {
            if place > 0 { left = min(most, left + (time - last) * Int64(perSecond)) }
            last = time
            if left < 1000 { return true }
            left -= 1000
        }
        return false
    }

    /// S67: of a value that nobody has, nothing is kept.
    mutating func forgetAskers() {
        asked = asked.filter { asker, _ in
            if case .login(let id) = asker { return !holders(id).isEmpty }
            return true
        }
    }
}
