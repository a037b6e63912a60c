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

    /// S50: to the byte. For Swift both spellings are one text, for a database they are two people's.
    @Test func anAppsOwnWordsAreSpelledExactly() {
        let (composed, decomposed) = ("ren\u{E9}", "rene\u{301}")
        for (word, other) in [(composed, decomposed), (decomposed, composed)] {
            let own = NobodyValues([IdentityValue(word)])
            #expect(own.contains(word) && !own.contains(other))
        }
        let both = NobodyValues([IdentityValue(composed), IdentityValue(decomposed)])
        #expect(both.contains(composed) && both.contains(decomposed))
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
        " \u{200B}null\u{FEFF} ", "\u{FFF9}\u{FFFA}\u{FFFB}", "\u{FFFC}", "\u{FFFD}\u{FFFD}", "\u{1D159}", "\u{13430}",
        "\u{13441}", "\u{13442}", "\u{13455}", "\u{E0FFF}", "\u{301}",
        "\u{20DD}\u{301}", "\u{93E}", "\u{16FE4}", "\u{600}", "\u{301}null", "\u{FFFC}0\u{FFFC}",
    ]) func whatNobodySeesNamesNobody(_ value: String) {
        #expect(NobodyValues.standard.contains(value))
        #expect(!NobodyValues.standard.contains(value + "7"))
    }

    /// Code points that no character has, and that a literal cannot have either.
    @Test(arguments: [0xFFFF, 0xFDD0, 0x10FFFE]) func noncharactersNameNobody(_ code: UInt32) throws {
        #expect(NobodyValues.standard.contains(String(try #require(Unicode.Scalar(code)))))
    }

    /// A mark belongs to the letter that it stands behind, and a letter of one's own is one.
    @Test(arguments: ["e\u{301}", "\u{928}\u{93E}\u{92E}", "\u{F8FF}", "\u{1F600}", "null\u{301}", "\u{600}1"])
    func whatShowsNamesSomebody(_ value: String) { #expect(!NobodyValues.standard.contains(value)) }

    /// S81.
    @Test func someEMailsNameNobody() {
        var nobody = NobodyValues.standard
        for email in ["null@null.com", "NoReply@x.io", "null@", "null"] {
            #expect(nobody.contains(Identity(.email, IdentityValue(email))), "\(email)")
        }
        #expect(!nobody.contains(Identity(.email, "test@x.io")) && !nobody.contains(Identity(.other, "null@x.io")))
        #expect(!nobody.contains(Identity(.email, "nullnull@x.io")))
        for hidden in ["\u{200B}@x.com", "\u{200B}null\u{FEFF}@x.com", "\u{301}@x.com", "@x.com", "null@\u{301}x.com"] {
            #expect(nobody.contains(email: hidden), "\(hidden.debugDescription)")
        }
        #expect(!nobody.contains(email: "\u{FC}@x.com") && !nobody.contains(email: "\u{928}\u{93E}@x.com"))
        nobody.emailWords.insert("test")
        #expect(nobody.contains(Identity(.email, "Test@x.io")))
    }
}
