// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Contracts

/// Codes and names that programs outside rely on: never renamed.
@Suite struct CodesTests {
    @Test func reasonCodesAndTheirStatuses() {
        let table: [(ReasonCode, String, Int)] = [
            (.unauthenticated, "UNAUTHENTICATED", 401), (.insufficientScope, "INSUFFICIENT_SCOPE", 403),
            (.userTokenNotAllowed, "USER_TOKEN_NOT_ALLOWED", 403), (.userTokenRequired, "USER_TOKEN_REQUIRED", 403),
            (.invalidRequest, "INVALID_REQUEST", 400),
            (.unknownType, "UNKNOWN_TYPE", 400), (.idReused, "ID_REUSED", 409), (.internalError, "INTERNAL_ERROR", 500),
            (.userLinkingNotConfigured, "USERLINKING_NOT_CONFIGURED", 403),
            (.installNotFound, "INSTALL_NOT_FOUND", 404),
            (.installDoesNotBelongToApp, "INSTALL_DOES_NOT_BELONG_TO_APP", 403),
            (.installDeleted, "INSTALL_DELETED", 403), (.installDisabled, "INSTALL_DISABLED", 403),
            (.installDeactivated, "INSTALL_DEACTIVATED", 403),
            (.installLinkedToOtherUser, "INSTALL_LINKED_TO_OTHER_USER", 403),
            (.cannotLinkExistingPersonToOtherPerson, "CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON", 403),
            (.multipleInstallsActive, "MULTIPLE_INSTALLS_ACTIVE", 409), (.userNotFound, "USER_NOT_FOUND", 404),
            (.userErased, "USER_ERASED", 410), (.externalIDTaken, "EXTERNAL_ID_TAKEN", 409),
            (.externalIDChanged, "EXTERNAL_ID_CHANGED", 409), (.linkBarred, "LINK_BARRED", 409),
            (.noUser, "NO_USER", 404), (.userAlreadyExists, "USER_ALREADY_EXISTS", 409),
            (.userAlreadyLinked, "USER_ALREADY_LINKED", 409),
            (.userCreationInProgress, "USER_CREATION_IN_PROGRESS", 409),
            (.userLinkingInProgress, "USER_LINKING_IN_PROGRESS", 409),
            (.noLinkingInProgress, "NO_LINKING_IN_PROGRESS", 409),
            (.sdkResetInProgress, "SDK_RESET_IN_PROGRESS", 409),
            (.userDisabledRemotely, "USER_DISABLED_REMOTELY", 403),
            (.appSideLinkingFailed, "APP_SIDE_LINKING_FAILED", 409),
            (.authCodeInvalid, "AUTH_CODE_INVALID", 403), (.authCodeExpired, "AUTH_CODE_EXPIRED", 403),
            (.authCodeUsed, "AUTH_CODE_USED", 403), (.authCodeLimitReached, "AUTH_CODE_LIMIT_REACHED", 429),
            (.appSecretInvalid, "APP_SECRET_INVALID", 403), (.serverError, "SERVER_ERROR", 502),
            (.lookupError, "LOOKUP_ERROR", 400), (.validationError, "VALIDATION_ERROR", 400),
            (.notFoundError, "NOT_FOUND_ERROR", 404), (.ambiguousIdentity, "AMBIGUOUS_IDENTITY", 409),
            (.mergeBarred, "MERGE_BARRED", 409),
            (.aliasError, "ALIAS_ERROR", 400),
            (.aliasingNotProvisioned, "ALIASING_NOT_PROVISIONED", 403), (.limitExceeded, "LIMIT_EXCEEDED", 400),
            (.throttled, "THROTTLED", 429), (.verificationRequired, "VERIFICATION_REQUIRED", 403),
            (.restricted, "RESTRICTED", 403),
            (.profileErased, "PROFILE_ERASED", 410), (.requestStarted, "REQUEST_STARTED", 409),
            (.resultsNotReady, "RESULTS_NOT_READY", 409), (.resultsGone, "RESULTS_GONE", 410),
            // Verification
            (.authTokenNotProvided, "AuthTokenNotProvided", 401), (.invalidAuthToken, "InvalidAuthToken", 401),
            (.invalidIdentityToken, "INVALID_IDENTITY_TOKEN", 401),
            (.identitiesDataInvalid, "IDENTITIES_DATA_INVALID", 400),
            (.identitiesSizeLimitExceeded, "IDENTITIES_SIZE_LIMIT_EXCEEDED", 400),
            (.identityFeatureNotEnabled, "IDENTITY_FEATURE_NOT_ENABLED", 403),
            (.uidOrEmailIsMandatory, "UID_OR_EMAIL_IS_MANDATORY", 400), (.iatIsMandatory, "IAT_IS_MANDATORY", 400),
        ]
        #expect(table.map(\.0) == ReasonCode.allCases)
        for (code, name, status) in table {
            #expect(code.rawValue == name)
            #expect(code.httpStatus == status)
            #expect(!code.defaultMessage.isEmpty)
        }
    }

    /// F2: to the letter.
    @Test func theVendorsMessages() {
        let table: [(ReasonCode, String)] = [
            (.installDoesNotBelongToApp, "Install does not belong to this application."),
            (.installDisabled, "Install is disabled."), (.installDeleted, "Install is deleted."),
            (
                .cannotLinkExistingPersonToOtherPerson,
                "This install is already in use, linking to another install is not possible."
            ),
            (.installLinkedToOtherUser, "Install linked to another user."),
            (.installNotFound, "Install was not found by the install ID provided."),
        ]
        for (code, message) in table { #expect(Rejection(code).message == message) }
    }

    @Test(
        arguments: [
            ("user.link", .userLink), ("USER_LINK", .userLink), ("user_link", .userLink), ("user.delete", .userDelete),
            ("USER_DELETE", .userDelete), ("sdk", .sdk), ("SDK", .sdk), ("identity.sync", .identitySync),
            ("IDENTITY_SYNC", .identitySync), ("verification.check", .verificationCheck),
            ("VERIFICATION_CHECK", .verificationCheck), ("admin", .admin), ("internal", .internal),
            ("", nil), ("user", nil), ("userlink", nil), ("user link", nil), ("user-link", nil), ("user.read", nil),
            (" user.link", nil), ("user.link ", nil), ("_user_link_", nil), ("user__link", nil),
        ] as [(String, Scope?)]) func scopes(_ spelling: String, _ scope: Scope?)
    {
        #expect(Scope(spelling: spelling) == scope)
    }

    @Test func scopeNamesArePinned() {
        #expect(
            Scope.allCases.map(\.rawValue) == [
                "user.link", "user.delete", "sdk", "identity.sync", "identity.vouch", "verification.check", "support",
                "import", "admin", "internal",
            ])
    }

    @Test func headersOfDeadLetters() {
        let letter = DeadLetter(
            reason: "NOT_JSON", step: .decode, error: String(repeating: "e", count: 10_000), attempts: 4, topic: "t",
            partition: 3, offset: 42, timestampMs: -1, group: "g")
        let headers = letter.headers(now: Timestamp(milliseconds: 0))
        let texts = headers.map { ($0.name, String(decoding: $0.value ?? [], as: UTF8.self)) }
        let expected = [
            ("dlq_reason", "NOT_JSON"), ("dlq_step", "decode"), ("dlq_timestamp", "1970-01-01T00:00:00.000Z"),
            ("dlq_error", String(repeating: "e", count: 8192)), ("dlq_attempts", "4"), ("dlq_original_topic", "t"),
            ("dlq_original_partition", "3"), ("dlq_original_offset", "42"), ("dlq_original_timestamp", "-1"),
            ("dlq_group", "g"),
        ]
        #expect(texts.map(\.0) == expected.map(\.0))
        #expect(texts.map(\.1) == expected.map(\.1))
    }

    @Test func aLongErrorIsCutBetweenCharacters() throws {
        let letter = DeadLetter(
            reason: "X", step: .decide, error: "x" + String(repeating: "\u{e9}", count: 5000), topic: "t", partition: 0,
            offset: 0, timestampMs: 0, group: "g")
        let bytes = try #require(
            letter.headers(now: Timestamp(milliseconds: 0)).first { $0.name == "dlq_error" }?.value)
        #expect(bytes.count <= 8192)
        #expect(String(validating: bytes, as: UTF8.self) != nil)
    }
}
