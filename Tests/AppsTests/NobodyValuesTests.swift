// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Apps

@Suite struct NobodyValuesTests {
    @Test(arguments: [
        "", " ", "\u{A0}\u{3000}", "null", "NULL", " Nil ", "none", "(null)", "<null>", "undefined", "Unknown", "Guest",
        "ANONYMOUS", "nan", "[object object]", "-1", "0", "000", "-", "----", "0-0",
        "00000000-0000-0000-0000-000000000000", "00000000000000000000000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff", "FFFFFFFF-ffff-FFFF-ffff-ffffffffffff", "xxxxxxxxxxxxxxxx",
    ]) func nobody(_ value: String) { #expect(NobodyValues.standard.contains(value)) }

    @Test(arguments: [
        "1", "a", "11", "aaaa", "7-7", "anna", "nullable", "nobody", "0a", "10", "null@null.io", "\u{212A}",
        "00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-fffffffffffe", "x-x-x",
        String(repeating: "x", count: 65), "nu ll", "n\u{FC}ll",
    ]) func somebody(_ value: String) { #expect(!NobodyValues.standard.contains(value)) }

    @Test func anAppsOwnWords() {
        let own = NobodyValues(["Nobody"])
        #expect(own.contains("Nobody") && !own.contains("NOBODY") && !own.contains("null"))
        #expect(own.contains("0000"), "what is no value at all stays none")
    }

    /// Other alphabets' capitals are other people: the Kelvin sign is no k.
    @Test func foldingIsOfASCIIOnly() {
        #expect("MiKe@Corp.COM".asciiLowercased == "mike@corp.com")
        #expect("mi\u{212A}e".asciiLowercased == "mi\u{212A}e" && "\u{C0}B".asciiLowercased == "\u{C0}b")
        #expect("".asciiLowercased.isEmpty)
    }

    /// What a broken exporter writes for everybody, and nobody sees.
    @Test(arguments: [
        "\u{200B}", "\u{FEFF}", "\u{200D}\u{2060}", "\u{3164}", "\u{2800}", "\u{E0061}\u{E0062}",
        " \u{200B}null\u{FEFF} ",
    ]) func whatNobodySeesNamesNobody(_ value: String) {
        #expect(NobodyValues.standard.contains(value))
        #expect(!NobodyValues.standard.contains(value + "7"))
    }

    /// S81.
    @Test func someEMailsNameNobody() {
        var nobody = NobodyValues.standard
        for email in ["null@null.com", "NoReply@x.io", "null@", "null"] {
            #expect(nobody.contains(Identity(.email, IdentityValue(email))), "\(email)")
        }
        #expect(!nobody.contains(Identity(.email, "test@x.io")) && !nobody.contains(Identity(.other, "null@x.io")))
        #expect(!nobody.contains(Identity(.email, "nullnull@x.io")))
        nobody.emailWords.insert("test")
        #expect(nobody.contains(Identity(.email, "Test@x.io")))
    }
}
