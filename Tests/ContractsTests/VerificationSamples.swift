// SPDX-License-Identifier: Apache-2.0

@testable import Contracts

extension GoldenTests {
    static let verificationSamples: [Sample] = [
        message(
            "command-verification-login",
            VerificationLogin(
                deviceId: "d1", userId: "captain_planet", userEmail: "captain@example.com", userName: "Captain",
                userAuthToken: "pZXZc5LIEndozpTesCNt71buvH759yRwZGeC5mHfuzc=", fullPrivacy: false)),
        message("command-verification-login-bare", VerificationLogin(deviceId: "d1")),
        message(
            "command-verification-login-identity",
            VerificationLoginIdentity(deviceId: "d1", identityToken: "e30.e30.AA", fullPrivacy: true)),
        message("command-verification-logout", VerificationLogout(deviceId: "d1")),
        message(
            "command-verification-check",
            VerificationCheck(userId: "captain_planet", userEmail: nil, userAuthToken: "d185f1fd")),
        message("command-verification-usage", VerificationUsage()),
        message(
            "event-verification-verified", VerificationVerified(deviceId: "d1", method: .authToken, keyId: "k1")),
        message(
            "event-verification-failed",
            VerificationFailed(deviceId: "d1", method: .authToken, reason: .authTokenNotProvided)),
        message(
            "event-verification-unverified-observed",
            UnverifiedObserved(deviceId: "d1", method: .identityToken, reason: .iatIsMandatory)),
        message(
            "event-verification-session-changed",
            SessionChanged(
                deviceId: "d1", state: .verified, mayFileIssues: true, cause: .login,
                mpid: MPID(-8_532_907_531_268_105_187))),
        message(
            "event-verification-session-refused",
            SessionChanged(deviceId: "d1", state: .unverified, mayFileIssues: false, cause: .refusal)),
        message("command-verification-get-session", GetSession(deviceId: "d1")),
        message("command-verification-review-session", ReviewSession(deviceId: "d1")),
        message(
            "event-verification-session-ended",
            SessionChanged(
                deviceId: "d1", state: .unverified, mayFileIssues: false, cause: .ended, reason: .keyGone,
                mpid: MPID(-8_532_907_531_268_105_187))),
        message("event-verification-erased", SessionsErased(mpids: [MPID(-7), MPID(1)].compactMap(\.self))),
        reply(
            "reply-verification-get-session-succeeded",
            Reply(
                commandId: "c1", commandType: GetSession.type, commandDigest: digest, status: .succeeded,
                result: SessionResult(
                    deviceId: "d1", state: .verified, mayFileIssues: true, hasLogin: true,
                    mpid: MPID(-8_532_907_531_268_105_187), keyId: "k1", verifiedAt: time("2026-11-21T10:24:04.123Z")))),
        reply(
            "reply-verification-login-succeeded",
            Reply(
                commandId: "c1", commandType: VerificationLogin.type, commandDigest: digest, status: .succeeded,
                result: VerificationResult(
                    state: .verified, mayFileIssues: true, keyId: "k1", mpid: MPID(-8_532_907_531_268_105_187)))),
        reply(
            "reply-verification-login-anonymous",
            Reply(
                commandId: "c1", commandType: VerificationLogin.type, commandDigest: digest, status: .succeeded,
                result: VerificationResult(state: .anonymous, mayFileIssues: true, anonymousReason: .noIdentifier))),
        reply(
            "reply-verification-login-rejected",
            Reply<VerificationResult>(
                commandId: "c1", commandType: VerificationLogin.type, commandDigest: digest, status: .rejected,
                reason: .invalidAuthToken,
                message: ReasonCode.invalidAuthToken.defaultMessage)),
        reply(
            "reply-verification-usage-succeeded",
            Reply(
                commandId: "c1", commandType: VerificationUsage.type, commandDigest: digest, status: .succeeded,
                result: VerificationUsageResult(counts: [
                    .init(method: .authToken, keyId: "k1", count: 3, lastUsed: time("2026-11-21T10:24:04.123Z")),
                    .init(
                        method: .authToken, reason: .invalidAuthToken, count: 1,
                        lastUsed: time("2026-11-21T10:24:04.123Z")),
                ]))),
    ]
}
