// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation

/// How far something is that takes minutes: one line on standard error, which is written again and again.
enum Progress {
    static func show(_ done: Int, of count: Int, _ what: String, since start: ContinuousClock.Instant) {
        let filled = done * 40 / max(1, count)
        let bar = String(repeating: "#", count: filled) + String(repeating: "-", count: 40 - filled)
        let seconds = Int((ContinuousClock.now - start).inSeconds)
        let line = "\r[\(bar)] \(done) \(what), \(seconds) s" + (done == count ? "\n" : "")
        FileHandle.standardError.write(Data(line.utf8))
    }
}
