// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Runtime

@Suite struct EnvironmentSettingsTests {
    /// Whoever reads the message need not look up what the process was given.
    @Test func aWrongValueIsShown() {
        enum Form: String, CaseIterable { case json, text }
        let settings = EnvironmentSettings(["BATCH_SIZE": "abc", "LOG_FORMAT": "xml"])
        #expect {
            _ = try settings.integer(.batchSize)
        } throws: {
            "\($0)" == "BATCH_SIZE: abc is not a whole number from 1 to 10000"
        }
        #expect {
            _ = try settings.choice("LOG_FORMAT", default: Form.json)
        } throws: {
            "\($0)" == "LOG_FORMAT: xml is not one of json, text"
        }
    }
}
