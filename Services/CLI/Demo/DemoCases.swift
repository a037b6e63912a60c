// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// What has happened to twelve people, as docs/console.md tells it: each has an id to look for, and something to find.
struct DemoCases {
    let people: DemoPeople

    private var stage: DemoStage { people.stage }

    func happen() throws {
        try wrongMerge()
        try stolenPhone()
        try wrongExternalID()
        try refusedLogin()
        try erasedAndBack()
        try lateLink()
        try deadLetter()
        try usedCode()
        try somebodyElsesPhone()
        try restricted()
        try disabled()
        try sharedTablet()
    }

    /// `ivan@mail.example`: the app said his e-mail of Grace, on whose tablet he was, and his phone found her.
    private func wrongMerge() throws {
        let login = DemoPeople.login(
            "tablet-7", ["customerid": "grace", "email": "grace@mail.example", "device_application_stamp": "stamp-7"])
        let reply = try stage.done(DemoPeople.sdk, [login])[0]
        let mpid = reply.result?["mpid"] ?? .null
        try stage.done(
            DemoPeople.sdk,
            [
                .init(
                    "sync.modify",
                    [
                        "mpid": mpid,
                        "changes": [["identityType": "email", "newValue": "ivan@mail.example"]],
                    ])
            ])
        try stage.done(
            DemoPeople.sdk,
            [
                DemoPeople.login(
                    "ivans-phone", ["email": "ivan@mail.example", "device_application_stamp": "stamp-8"])
            ])
    }

    /// `ada`: phone and tablet, and the phone is gone.
    private func stolenPhone() throws {
        try people.signUp([("ada", "adas-phone", "phone")])
        try people.signUp([("ada", "adas-tablet", "tablet")])
    }

    /// `lindas-phone`: a backend has mistyped her.
    private func wrongExternalID() throws { try people.signUp([("lnida", "lindas-phone", "phone")]) }

    /// `maries-phone` of the app `support`: nobody's token.
    private func refusedLogin() throws {
        try stage.refused(
            "support-sdk",
            .init(
                "verification.login",
                [
                    "deviceId": "maries-phone", "userId": "Marie",
                    "userAuthToken": .string(String(repeating: "0", count: 64)),
                ]),
            "InvalidAuthToken")
    }

    /// `joan`: she was erased, and signed up again on the same phone.
    private func erasedAndBack() throws {
        let joan = try people.signUp([("joan", "joans-phone", "phone")])[0].result?["userId"] ?? .null
        try stage.done(DemoPeople.backend, [.init("link.erase-user", ["userId": joan])])
        try people.signUp([("joan", "joans-phone", "phone")])
    }

    /// `lars-phone`: the backend's answer to a turn that was over came in the turn after it.
    private func lateLink() throws {
        try beginUnlinked("lars-phone")
        let hourAgo = Timestamp(milliseconds: Timestamp.now.milliseconds - 3_600_000)
        try stage.refused(
            DemoPeople.backend,
            .init("link.request", ["installId": "lars-phone", "externalId": "lars"], time: hourAgo),
            "NO_LINKING_IN_PROGRESS")
    }

    /// Somebody without a name.
    private func beginUnlinked(_ install: String) throws {
        try stage.done(
            DemoPeople.sdk,
            [
                .init(
                    "user.create",
                    [
                        "installId": .string(install), "device": ["kind": "phone", "platform": "ios"],
                        "appSecret": "demo-app-secret", "linking": "none",
                    ])
            ])
    }

    /// `dora`: what her backend says is signed with a key that has ended, so nobody has heard of her.
    private func deadLetter() throws {
        try beginUnlinked("doras-phone")
        try stage.refused(
            "demo-expired", .init("link.request", ["installId": "doras-phone", "externalId": "dora"]), "UNAUTHENTICATED"
        )
    }

    /// `coras-tablet`: a code that is used is used.
    private func usedCode() throws {
        let code = try stage.done(DemoPeople.backend, [.init("user.request-auth-code", ["externalId": "cora"])])[0]
        try stage.done(DemoPeople.sdk, [DemoPeople.creation("coras-phone", "phone", code: DemoPeople.code(code))])
        try stage.refused(
            DemoPeople.sdk, DemoPeople.creation("coras-tablet", "tablet", code: DemoPeople.code(code)), "AUTH_CODE_USED"
        )
    }

    /// `ottos-phone`: his sister's now, and his backend does not know.
    private func somebodyElsesPhone() throws {
        try people.signUp([("olivia", "ottos-phone", "phone")])
        try stage.refused(
            DemoPeople.backend, .init("link.request", ["installId": "ottos-phone", "externalId": "otto"]),
            "INSTALL_LINKED_TO_OTHER_USER")
    }

    /// `rita@mail.example`: she has asked that nothing be done with what is known of her.
    private func restricted() throws {
        try people.logIn([("rita", "ritas-browser")])
        try stage.done(
            DemoPeople.support,
            [
                .init(
                    "sync.restrict",
                    [
                        "identity": ["type": "email", "value": "rita@mail.example"], "isRestricted": true,
                        "author": "kim", "reason": "she asked for it, case 4720",
                    ])
            ])
    }

    /// `dirks-phone`: somebody has disabled it.
    private func disabled() throws {
        try people.signUp([("dirk", "dirks-phone", "phone")])
        try stage.done(
            DemoPeople.admin,
            [
                .init(
                    "link.set-install-status",
                    [
                        "installId": "dirks-phone", "status": "disabled", "author": "kim",
                        "reason": "case 4721, thought to be stolen",
                    ])
            ])
    }

    /// `family-tablet`: two people in turn, and who is it now?
    private func sharedTablet() throws {
        for name in ["mona", "theo"] {
            try stage.done(
                DemoPeople.sdk,
                [
                    DemoPeople.login(
                        "family-tablet",
                        [
                            "customerid": .string(name), "email": .string("\(name)@mail.example"),
                            "device_application_stamp": "stamp-family",
                        ])
                ])
        }
    }
}
