// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CLI

@Suite struct NegativeIDsTests {
    @Test(arguments: [
        ("explain -8277207418211138830 --app demo", "explain --app demo -- -8277207418211138830"),
        ("explain --app demo -8277207418211138830 --json", "explain --app demo --json -- -8277207418211138830"),
        ("explain --app demo -- -8277207418211138830", "explain --app demo -- -8277207418211138830"),
        ("explain 8277207418211138830 --limit -1", "explain 8277207418211138830 --limit -1"),
        ("explain -v anna --app demo", "explain -v anna --app demo"),
        ("export --mpid -8277207418211138830", "export --mpid -8277207418211138830"),
    ])
    func anMPIDWithAMinusIsNoOption(_ given: String, _ expected: String) {
        let words = IdentityBusCommand.negativeIDsLast(given.split(separator: " ").map(String.init))
        #expect(words.joined(separator: " ") == expected)
    }
}
