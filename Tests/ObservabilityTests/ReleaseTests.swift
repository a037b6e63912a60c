// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Observability

@Suite struct ReleaseTests {
    /// It becomes a label: nothing but a commit may stand there.
    @Test(arguments: [
        ("0123456789abcdef0123456789abcdef01234567", true), ("4b5ba2a", true), ("4b5ba2", false), ("unknown", false),
        ("", false), ("4b5ba2a\"} 1\nx", false), ("4B5BA2A", false),
    ])
    func theCommitIsWhatTheEnvironmentNames(_ text: String, _ isCommit: Bool) {
        #expect(Release.commit(environment: ["IDENTITYBUS_COMMIT": text]) == (isCommit ? text : "unknown"))
        #expect(Release.commit(environment: [:]) == "unknown")
    }
}
