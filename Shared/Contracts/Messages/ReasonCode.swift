// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// Why a command was rejected: stable codes that programs may act on. A code is never renamed or reused.
///
/// Link codes are the vendor's (F2, F3); the others are ours.
public enum ReasonCode: String, WireEnum {
    // Any command
    case unauthenticated = "UNAUTHENTICATED"
    case insufficientScope = "INSUFFICIENT_SCOPE"
    case userTokenNotAllowed = "USER_TOKEN_NOT_ALLOWED"
    /// An API key asks for what only the install's own tokens open.
    case userTokenRequired = "USER_TOKEN_REQUIRED"
    case invalidRequest = "INVALID_REQUEST"
    case unknownType = "UNKNOWN_TYPE"
    case idReused = "ID_REUSED"
    /// The command could not be decided although storage and broker work; it stands in the dead-letter topic.
    case internalError = "INTERNAL_ERROR"

    // Link
    case userLinkingNotConfigured = "USERLINKING_NOT_CONFIGURED"
    case installNotFound = "INSTALL_NOT_FOUND"
    case installDoesNotBelongToApp = "INSTALL_DOES_NOT_BELONG_TO_APP"
    case installDeleted = "INSTALL_DELETED"
    case installDisabled = "INSTALL_DISABLED"
    case installDeactivated = "INSTALL_DEACTIVATED"
    case installLinkedToOtherUser = "INSTALL_LINKED_TO_OTHER_USER"
    case cannotLinkExistingPersonToOtherPerson = "CANNOT_LINK_EXISTING_PERSON_TO_OTHER_PERSON"
    case multipleInstallsActive = "MULTIPLE_INSTALLS_ACTIVE"
    case userNotFound = "USER_NOT_FOUND"
    case userErased = "USER_ERASED"
    /// Another user has the external id, or it is held for one who had it (L68).
    case externalIDTaken = "EXTERNAL_ID_TAKEN"
    /// The external id was changed, and names nobody until it is free again (L66).
    case externalIDChanged = "EXTERNAL_ID_CHANGED"
    /// Support has taken this external id from this user (L74).
    case linkBarred = "LINK_BARRED"

    // User (names of the SDK's failure reasons where it has one, F8)
    case noUser = "NO_USER"
    case userAlreadyExists = "USER_ALREADY_EXISTS"
    case userAlreadyLinked = "USER_ALREADY_LINKED"
    case userCreationInProgress = "USER_CREATION_IN_PROGRESS"
    case userLinkingInProgress = "USER_LINKING_IN_PROGRESS"
    case noLinkingInProgress = "NO_LINKING_IN_PROGRESS"
    case sdkResetInProgress = "SDK_RESET_IN_PROGRESS"
    case userDisabledRemotely = "USER_DISABLED_REMOTELY"
    case appSideLinkingFailed = "APP_SIDE_LINKING_FAILED"
    case authCodeInvalid = "AUTH_CODE_INVALID"
    case authCodeExpired = "AUTH_CODE_EXPIRED"
    case authCodeUsed = "AUTH_CODE_USED"
    case authCodeLimitReached = "AUTH_CODE_LIMIT_REACHED"
    case appSecretInvalid = "APP_SECRET_INVALID"
    /// Another service could not decide its part.
    case serverError = "SERVER_ERROR"

    // Sync
    case lookupError = "LOOKUP_ERROR"
    case validationError = "VALIDATION_ERROR"
    case notFoundError = "NOT_FOUND_ERROR"
    /// The identities lead to several profiles, where one is meant.
    case ambiguousIdentity = "AMBIGUOUS_IDENTITY"
    /// Support took the identity from this profile, or the two profiles from each other (S128).
    case mergeBarred = "MERGE_BARRED"
    case aliasError = "ALIAS_ERROR"
    case aliasingNotProvisioned = "ALIASING_NOT_PROVISIONED"
    case limitExceeded = "LIMIT_EXCEEDED"
    case throttled = "THROTTLED"
    /// The app enforces verification, and neither the verification service nor a backend's key vouches.
    case verificationRequired = "VERIFICATION_REQUIRED"
    case restricted = "RESTRICTED"
    /// The MPID was erased; it is never used again.
    case profileErased = "PROFILE_ERASED"
    /// A request of a data subject has begun, and cannot be cancelled any more.
    case requestStarted = "REQUEST_STARTED"
    case resultsNotReady = "RESULTS_NOT_READY"
    /// They could be had for seven days.
    case resultsGone = "RESULTS_GONE"

    // Verification (F57, F60: the vendor's spelling)
    case authTokenNotProvided = "AuthTokenNotProvided"
    case invalidAuthToken = "InvalidAuthToken"
    case invalidIdentityToken = "INVALID_IDENTITY_TOKEN"
    case identitiesDataInvalid = "IDENTITIES_DATA_INVALID"
    case identitiesSizeLimitExceeded = "IDENTITIES_SIZE_LIMIT_EXCEEDED"
    case identityFeatureNotEnabled = "IDENTITY_FEATURE_NOT_ENABLED"
    case uidOrEmailIsMandatory = "UID_OR_EMAIL_IS_MANDATORY"
    case iatIsMandatory = "IAT_IS_MANDATORY"

    /// The HTTP status that says the same.
    public var httpStatus: Int {
        switch self {
        case .unauthenticated: 401
        case .insufficientScope, .userTokenNotAllowed, .userTokenRequired, .userLinkingNotConfigured,
            .installDoesNotBelongToApp, .installDeleted, .installDisabled, .installDeactivated,
            .installLinkedToOtherUser,
            .cannotLinkExistingPersonToOtherPerson, .userDisabledRemotely, .authCodeInvalid, .authCodeExpired,
            .authCodeUsed, .appSecretInvalid, .aliasingNotProvisioned, .verificationRequired,
            .restricted:
            403
        case .installNotFound, .userNotFound, .noUser, .notFoundError: 404
        case .invalidRequest, .unknownType, .lookupError, .validationError, .aliasError, .limitExceeded: 400
        case .idReused, .ambiguousIdentity, .multipleInstallsActive, .userAlreadyExists, .userAlreadyLinked,
            .userCreationInProgress,
            .userLinkingInProgress, .noLinkingInProgress, .sdkResetInProgress, .appSideLinkingFailed,
            .externalIDTaken, .externalIDChanged, .linkBarred, .mergeBarred, .requestStarted, .resultsNotReady:
            409
        case .userErased, .profileErased, .resultsGone: 410
        case .authCodeLimitReached, .throttled: 429
        case .serverError: 502
        // Verification
        case .authTokenNotProvided, .invalidAuthToken, .invalidIdentityToken: 401
        case .identityFeatureNotEnabled: 403
        case .identitiesDataInvalid, .identitiesSizeLimitExceeded, .uidOrEmailIsMandatory, .iatIsMandatory: 400
        case .internalError: 500
        }
    }

    /// The message for people when the decider has nothing more exact to say. Where the vendor documents a message,
    /// it is that one, to the letter.
    public var defaultMessage: String {
        switch self {
        case .unauthenticated: "The credential does not check out."
        case .insufficientScope: "The API key lacks the scope that this command needs."
        case .userTokenNotAllowed: "User tokens are rejected here; use an API key."
        case .userTokenRequired:
            "An API key does not open an install; show its user's token, or the install token that its creation returned."
        case .invalidRequest: "The request is not valid."
        case .unknownType: "This command type is not known here."
        case .idReused: "A command with this source and id but other content was received before; use a new id."
        case .internalError: "The command could not be decided; it was set aside for the operators."
        case .userLinkingNotConfigured: "User linking is not enabled for this application."
        case .installNotFound: "Install was not found by the install ID provided."
        case .installDoesNotBelongToApp: "Install does not belong to this application."
        case .installDeleted: "Install is deleted."
        case .installDisabled: "Install is disabled."
        case .installDeactivated: "Install is linked already and is no longer active."
        case .installLinkedToOtherUser: "Install linked to another user."
        case .cannotLinkExistingPersonToOtherPerson:
            "This install is already in use, linking to another install is not possible."
        case .multipleInstallsActive: "More than one active install was found for this external id."
        case .userNotFound: "User was not found by the user ID provided."
        case .userErased: "This user was erased; the id is never used again."
        case .externalIDTaken: "Another user has this external id, or it is held for one who had it."
        case .externalIDChanged: "This external id was changed; ask the app's backend for the present one."
        case .linkBarred: "Support took this external id from this user; link.change-external-id gives it back."
        case .noUser: "There is no user on this install."
        case .userAlreadyExists: "There is a user on this install; reset before another one is created."
        case .userAlreadyLinked: "The user of this install is linked already."
        case .userCreationInProgress: "A user is being created on this install."
        case .userLinkingInProgress: "The user of this install is being linked."
        case .noLinkingInProgress: "No linker is awaited on this install."
        case .sdkResetInProgress: "This install is being reset."
        case .userDisabledRemotely: "The platform disabled this install."
        case .appSideLinkingFailed: "Linking did not succeed; try again."
        case .authCodeInvalid, .authCodeExpired, .authCodeUsed:  // U9
            // One message: what is known about a code is not for whoever tries codes.
            "The authentication code is not accepted; request a new one."
        case .authCodeLimitReached:
            "Too many authentication codes are outstanding for this external id; use one of them."
        case .appSecretInvalid: "The app secret is not accepted."
        case .serverError: "A part of the platform could not answer; try again."
        case .lookupError: "knownIdentities is empty."
        case .validationError: "The identities are not valid."
        case .notFoundError: "No profile was found."
        case .ambiguousIdentity: "The identities lead to several profiles."
        case .mergeBarred: "Support keeps these apart (sync.detach); sync.allow takes that away."
        case .aliasError: "The alias request is not valid."
        case .aliasingNotProvisioned: "Aliasing is not provisioned for this application."
        case .limitExceeded: "A limit of this application was reached; nothing was changed."
        case .throttled: "Too many identity commands; try again later."
        case .verificationRequired: "This app verifies its users: log in with a user authentication token."
        case .restricted: "What is known of this person is kept and not used (sync.restrict)."
        case .requestStarted: "The request has begun; it can be cancelled only while it is pending."
        case .resultsNotReady: "The request is not completed yet; ask how far it is."
        case .resultsGone: "The results are gone: they could be had for seven days. Make another request."
        case .profileErased: "This profile was erased; its id is never used again."
        // Verification
        case .authTokenNotProvided: "This app asks for a user authentication token, and none was given."
        case .invalidAuthToken: "The user authentication token is not valid for these identifiers."
        case .invalidIdentityToken: "The identity token is malformed, not signed with the app's secret, or too old."
        case .identitiesDataInvalid: "The identity token has an identity that is not valid."
        case .identitiesSizeLimitExceeded: "The identity token has more than 30 identities."
        case .identityFeatureNotEnabled: "The app has no secret for identity tokens."
        case .uidOrEmailIsMandatory: "The identity token has neither a uid nor an email."
        case .iatIsMandatory: "The identity token has no iat, in whole seconds since 1970."
        }
    }
}

/// A refusal with its reason code and one line for people that says what was wrong and what would be right.
/// The line never holds secrets; it may name members of the request but not quote long values.
public struct Rejection: Error, Sendable, Hashable, CustomStringConvertible {
    public var reason: ReasonCode
    public var message: String
    /// What is known in spite of it, for the reply's `result`.
    public private(set) var result: RawJSON?

    public init(_ reason: ReasonCode, _ message: String? = nil) {
        self.reason = reason
        self.message = message ?? reason.defaultMessage
    }

    public func carrying(_ result: some CommandResult) -> Rejection {
        var rejection = self
        // Results are plain values, which always encode.
        rejection.result = (try? WireJSONEncoder().encode(result)).map { RawJSON($0) }
        return rejection
    }

    public var description: String { "\(reason.rawValue): \(message)" }
}
