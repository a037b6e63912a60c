// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CLI

@Suite struct GlobTests {
    @Test(arguments: [
        ("", "", true), ("", "a", false), ("*", "", true), ("*", "abc", true), ("abc", "abc", true),
        ("abc", "abcd", false), ("abc", "ab", false), ("a*", "a", true), ("a*", "abc", true), ("a*", "ba", false),
        ("*c", "abc", true), ("*c", "abcd", false), ("a*c", "ac", true), ("a*c", "abbbc", true), ("a*c", "acb", false),
        ("*b*", "abc", true), ("*b*", "ac", false), ("a*b*c", "a-b-c", true), ("a*b*c", "acb", false),
        ("**", "x", true), ("a**c", "abc", true), ("ab*ab", "ab", false), ("ab*ab", "abab", true),
        ("aba*aba", "ababa", false), ("*ab*ab", "ab", false), ("*ab*ab", "xabyab", true), ("a*a", "a", false),
        ("*.events.v1", "identity.link.events.v1", true), ("*.events.v1", "identity.link.events.v10", false),
        ("identity.replies.*", "identity.replies.v1", true), ("*aab", "aaab", true), ("*a*b*b", "ab", false),
    ]) func matches(_ pattern: String, _ name: String, _ isMatch: Bool) {
        #expect(Glob(pattern).matches(name) == isMatch)
    }
}
