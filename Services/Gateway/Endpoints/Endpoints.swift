// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import WireJSON

extension Endpoint {
    /// Every endpoint of the API's port; ``admin`` has those of the admin port. A new one is a value here, an operation in
    /// docs/openapi.json (then `scripts/generate`) and a word in docs/gateway.md.
    static let all: [Endpoint] =
        linking + devices + identity + verification + privacy + [
            Endpoint("GET", "/openapi.json", .own, by: .anybody, .document)
        ]

    /// The linking vendor's server-to-server calls (F1, F4, F5).
    private static let linking = [
        Endpoint(
            "POST", "/v2/users/{install_id}/link", .linking, by: .backend, LinkingCalls.link,
            answer: LinkingCalls.linked),
        Endpoint(
            "POST", "/users/auth-code", .linking, by: .backend, LinkingCalls.requestCode, answer: LinkingCalls.code),
        Endpoint(
            "DELETE", "/users/{user_id:plain}", .linking, by: .backend, with: ["user", "sync", "verification"],
            pending: .goesOn,
            { EraseUser(userId: UserID($0.id)) }, answer: LinkingCalls.erased, progress: LinkingCalls.erasure),
        Endpoint(
            "GET", "/users/{user_id:plain}/erasure", .linking, by: .backend,
            { GetUserErasure(userId: UserID($0.id)) }, answer: LinkingCalls.erased, progress: LinkingCalls.erasure),
    ]

    /// OpenDSR, as versions 2.0 and 3.0 have it and the identity vendor serves it (F62), and our own call for a profile.
    private static let privacy = [
        Endpoint(
            "POST", "/v3|v2/requests", .openDSR, by: .privacy, parameters: [], FileRequest.self,
            data: OpenDSRCalls.file, answer: OpenDSRCalls.filed),
        Endpoint(
            "GET", "/v3|v2/requests", .openDSR, by: .privacy, parameters: [.groupID], OpenDSRCalls.group,
            answer: OpenDSRCalls.statuses),
        Endpoint(
            "GET", "/v3|v2/requests/{request_id:plain}", .openDSR, by: .privacy, parameters: [],
            { GetRequest(requestId: SubjectRequestID($0.id)) }, answer: OpenDSRCalls.status),
        Endpoint(
            "DELETE", "/v3|v2/requests/{request_id:plain}", .openDSR, by: .privacy, parameters: [],
            { CancelRequest(requestId: SubjectRequestID($0.id)) }, answer: OpenDSRCalls.cancelled),
        Endpoint(
            "GET", "/v3|v2/requests/{request_id:plain}/results", .openDSR, by: .privacy,
            with: ["link", "verification"],
            parameters: [], GetRequestResults.self, data: { ["requestId": .string($0.id)] },
            answer: OpenDSRCalls.results, followUps: OpenDSRCalls.ofOthers),
        Endpoint("GET", "/v3|v2/discovery", .openDSR, by: .anybody, .fixed(OpenDSRCalls.discovery)),
        Endpoint(
            "DELETE", "/v1/profiles/{mpid:plain}", .own, by: .backend, with: ["link", "user", "verification"],
            pending: .goesOn, parameters: [], ProfileCalls.erase, answer: LinkingCalls.erased,
            progress: ProfileCalls.erasure),
        Endpoint(
            "GET", "/v1/profiles/{mpid:plain}/erasure", .own, by: .backend, parameters: [], ProfileCalls.readErasure,
            answer: LinkingCalls.erased, progress: ProfileCalls.erasure),
    ]

    /// Our own calls for devices. The vendor's protocol between SDK and platform is not public (F9), so these say
    /// what the commands say.
    private static let devices = [
        Endpoint(
            "POST", "/sdk/v1/users", .own, by: .device, with: ["link"], pending: .asksLinker, CreateUser.self,
            data: OwnCalls.members(
                "installId", "device", "sdkVersion", "appVersion", "authCode", "appSecret", "linking"),
            progress: OwnCalls.install),
        Endpoint(
            "GET", "/sdk/v1/installs/{install_id}", .own, by: .expiredInstall,
            { GetUser(installId: InstallID($0.id)) }),
        Endpoint(
            "POST", "/sdk/v1/installs/{install_id}/link", .own, by: .install, with: ["link"], pending: .asksLinker,
            LinkUser.self,
            data: OwnCalls.install("authCode", "linking"), progress: OwnCalls.install),
        Endpoint(
            "POST", "/sdk/v1/installs/{install_id}/confirm-link", .own, by: .install, with: ["link"], ConfirmLink.self,
            data: OwnCalls.install("success", "externalId")),
        Endpoint(
            "POST", "/sdk/v1/installs/{install_id}/reset", .own, by: .expiredInstall, with: ["link"],
            { ResetUser(installId: InstallID($0.id)) }),
    ]

    /// The identity vendor's calls (F20).
    private static let identity = [
        Endpoint(
            "POST", "/v1/identify", .identity, by: .identity(.identify), IdentifyUser.self, data: IdentityCalls.person,
            answer: IdentityCalls.cachedUser),
        Endpoint(
            "POST", "/v1/login", .identity, by: .identity(.login), LogInUser.self, data: IdentityCalls.person,
            answer: IdentityCalls.cachedUser),
        Endpoint(
            "POST", "/v1/logout", .identity, by: .identity(.logout), LogOutUser.self, data: IdentityCalls.leaving,
            answer: IdentityCalls.user),
        Endpoint(
            "POST", "/v1/search", .identity, by: .identity(.search), SearchUser.self, data: IdentityCalls.person,
            answer: IdentityCalls.user),
        Endpoint(
            "POST", "/v1/{mpid}/modify", .identity, by: .identity(.modify), ModifyIdentities.self,
            data: IdentityCalls.modify, answer: IdentityCalls.modified),
        Endpoint(
            "POST", "/v1/identity/{api_key}/alias|Alias", .alias, by: .identity(.alias), AliasUsers.self,
            data: IdentityCalls.alias, answer: { _ in APIResponse(status: 202) }),
        // Of its web SDK, in each of its versions (F44).
        Endpoint(
            "POST", "/v3|v2|v1/JS/{api_key}/events|Events|forwarding|Forwarding", .own, by: .page, .nothing),
    ]

    /// Our own calls for verification: what the commands say.
    private static let verification = [
        Endpoint(
            "POST", "/v1/verification/login", .own, by: .app, with: ["sync"], VerificationLogin.self,
            data: OwnCalls.members("deviceId", "userId", "userEmail", "userName", "userAuthToken", "fullPrivacy")),
        Endpoint(
            "POST", "/v1/verification/login-identity", .own, by: .app, with: ["sync"], VerificationLoginIdentity.self,
            data: OwnCalls.members("deviceId", "identityToken", "fullPrivacy")),
        Endpoint(
            "POST", "/v1/verification/logout", .own, by: .app, with: ["sync"], VerificationLogout.self,
            data: OwnCalls.members("deviceId")),
        Endpoint(
            "POST", "/v1/verification/check", .own, by: .backend, VerificationCheck.self,
            data: OwnCalls.members("userId", "userEmail", "userAuthToken")),
        Endpoint(
            "GET", "/v1/verification/sessions/{device_id}", .own, by: .backend,
            { GetSession(deviceId: DeviceID($0.id)) }),
    ]
}
