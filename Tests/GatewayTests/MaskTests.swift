// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing
import WireJSON

@testable import Gateway

/// What a masked key is shown (docs/gateway.md "The admin port").
@Suite struct MaskTests {
    @Test(arguments: [
        ("ivan@mail.example", IdentityType.email, "i•••@m•••"), ("i@m", .email, "•••@•••"), ("ivan", .email, "i•••"),
        ("+491701234567", .mobileNumber, "•••67"), ("12345", .phoneNumber2, "•••"), ("ivan.meyer", .facebook, "i•••"),
    ])
    func aValueIsTold(_ text: String, _ type: IdentityType, _ shown: String) {
        #expect(Mask.shown(text, type) == shown)
    }

    /// Wherever the answer says what it is; and then in every sentence.
    @Test func valuesAreMaskedWhereverTheyStand() {
        let answer: JSONValue = [
            "id": "+491701234567",
            "rows": [
                [
                    "service": "sync", "words": "sync: profile 7 has mobile_number +491701234567, other ivan",
                    "row": [
                        "kind": "profile",
                        "identities": [
                            ["type": "mobile_number", "value": "+491701234567"], ["type": "other", "value": "ivan"],
                            ["type": "customerid", "value": "ivan-7"], ["type": "ios_idfv", "value": "A-1"],
                        ],
                    ],
                ]
            ],
            "data": [
                "identities": ["email": ["a@b.example"], "customerid": "ivan-7"], "userName": "Ivan",
                "changes": [["identityType": "facebook", "oldValue": "ivan.f", "newValue": "ivan.g"]],
            ],
        ]
        let masked = Mask.masked(answer)
        let text = String(decoding: masked.serialized(), as: UTF8.self)
        for value in ["+49170", "a@b", "Ivan\"", "ivan.f", "ivan.g", "other ivan"] {
            #expect(!text.contains(value), "\(value)")
        }
        // The app's own id of a person and a device's stay: by them people are told apart.
        #expect(text.contains(#""ivan-7""#) && text.contains(#""A-1""#))
        #expect(masked["id"] == "•••67")
    }

    /// An external id may be an e-mail, and a reason may name one.
    @Test func whatLooksLikeAnEmailIsOne() {
        let answer: JSONValue = [
            "externalId": "ivan@mail.example", "reason": "wrote as <eve@x.example>, twice", "a": "@x",
        ]
        #expect(
            Mask.masked(answer)
                == ["externalId": "i•••@m•••", "reason": "wrote as <e•••@x•••>, twice", "a": "@x"])
        #expect(Mask.masked("no a@b@c.example") == "no •••@b•••")
    }

    /// All of these are e-mails: as an id each is known whole, in a sentence by its end at least.
    @Test(arguments: [
        "o'brien@mail.example", "a=b/c@mail.example", "x|y(z)@mail.example", "\"odd q\"@mail.example",
        "first last@mail.example", "{x}@mail.example",
    ])
    func anEmailMayHaveOddCharacters(_ email: String) {
        let answer: JSONValue = [
            "externalId": .string(email), "words": .string("user 7 has the external id \(email) in place of ann"),
            "i": [["type": "customerid", "value": .string(email)]],
        ]
        let text = String(decoding: Mask.masked(answer).serialized(), as: UTF8.self)
        #expect(!text.contains("mail.example") && !text.contains(email.prefix { $0 != "@" }), "\(text)")
        #expect(text.contains("in place of ann"))
    }

    /// Who joins by what is shown joins nobody with somebody else.
    @Test func whatLooksAlikeIsToldApart() {
        let answer: JSONValue = [
            "i": [
                ["type": "email", "value": "anna@mail.example"], ["type": "email", "value": "alma@mail.example"],
                ["type": "twitter", "value": "a@m"], ["type": "email", "value": "anna@mail.example"],
            ],
            "words": "alma@mail.example, in place of anna@mail.example",
        ]
        let masked = Mask.masked(answer)
        let shown = masked["i"]?.arrayValue?.map { $0["value"]?.stringValue }
        #expect(shown == ["a•••@m•••", "a•••@m••• (2)", "•••@•••", "a•••@m•••"])
        #expect(masked["words"] == "a•••@m••• (2), in place of a•••@m•••")
    }

    /// A part of a word is another word, and what is masked is not masked again.
    @Test func wordsAreWhole() {
        let answer: JSONValue = [
            "i": [["type": "other", "value": "ann"]], "words": "ann, hanna, ann and anna", "type": "ann",
        ]
        #expect(Mask.masked(answer)["words"] == "a•••, hanna, a••• and anna")
        #expect(Mask.masked(answer)["type"] == "ann")
        #expect(Mask.masked(Mask.masked(answer)) == Mask.masked(answer))
        #expect(Mask.masked("i•••@m•••") == "i•••@m•••")
    }
}
