// SPDX-License-Identifier: Apache-2.0

import WireJSON

/// Our own calls for devices. The vendor's protocol between SDK and platform is not public, so these say what the
/// commands say.
enum DeviceSurface {
    static func command(_ name: String, _ installID: String, _ more: JSONObject = [:]) -> CommandDraft {
        var data: JSONObject = ["installId": .string(installID)]
        for member in more { data[member.name] = member.value }
        return CommandDraft(name: name, data: .object(data))
    }

    static func create(_ body: JSONObject) -> CommandDraft {
        let data = body.only("installId", "device", "sdkVersion", "appVersion", "authCode", "appSecret", "linking")
        return CommandDraft(
            name: "user.create", data: .object(data), acceptsPending: asksForLinker(body))
    }

    static func link(_ body: JSONObject, _ installID: String) -> CommandDraft {
        var draft = command("user.link", installID, body.only("authCode", "linking"))
        draft.acceptsPending = asksForLinker(body)
        return draft
    }

    /// The app's backend has to link first: the device is told so (202), and `confirm-link` brings the result.
    private static func asksForLinker(_ body: JSONObject) -> Bool { body["linking"] == "linker" }
}
