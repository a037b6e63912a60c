// SPDX-License-Identifier: Apache-2.0

import WireJSON

/// Our own calls for verification: what the commands say.
enum VerificationSurface {
    static func command(_ call: Route.VerificationCall, _ body: JSONObject) -> CommandDraft {
        let members: JSONObject =
            switch call {
            case .login: body.only("deviceId", "userId", "userEmail", "userName", "userAuthToken", "fullPrivacy")
            case .loginIdentity: body.only("deviceId", "identityToken", "fullPrivacy")
            case .logout: body.only("deviceId")
            case .check: body.only("userId", "userEmail", "userAuthToken")
            }
        return CommandDraft(name: "verification.\(call.rawValue)", data: .object(members))
    }
}
