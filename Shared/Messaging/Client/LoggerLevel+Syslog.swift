// SPDX-License-Identifier: Apache-2.0

internal import Logging

extension Logger.Level {
    /// librdkafka speaks in syslog levels: 0 emergency to 7 debug.
    init(syslog level: Int32) {
        switch level {
        case ...2: self = .critical
        case 3: self = .error
        case 4: self = .warning
        case 5: self = .notice
        case 6: self = .info
        default: self = .debug
        }
    }
}
