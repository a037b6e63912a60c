// SPDX-License-Identifier: Apache-2.0

import Contracts
import HTTPTypes
import Observability
import WireJSON

/// In whose words requests are read and answered.
enum Dialect: Sendable {
    /// The linking vendor's.
    case linking
    /// The identity vendor's, and those of its aliases, which differ a little.
    case identity, alias
    case own
    /// Of data subjects' requests.
    case openDSR

    var isIdentityVendors: Bool { self == .identity || self == .alias }

    /// A failure as the clients read it.
    /// - Parameter ref: names the request for support: the command's id when there is a command.
    func response(_ failure: APIFailure, ref: CommandID) -> APIResponse {
        var response =
            switch self {
            case .linking: LinkingCalls.failure(failure, ref)
            case .identity, .alias: IdentityCalls.failure(failure, ref, isAlias: self == .alias)
            case .own: OwnCalls.failure(failure, ref)
            case .openDSR: OpenDSRCalls.failure(failure, ref)
            }
        if let seconds = failure.retryAfter { response.headers[.retryAfter] = String(seconds) }
        if let quota = failure.quota { quota.tell(in: &response) }
        if failure.status == 401 {
            response.headers[.wwwAuthenticate] =
                isIdentityVendors || self == .openDSR ? #"Basic realm="identitybus""# : "Bearer"
        }
        return response
    }

    /// A service's words about its data, with the members named as these calls name them.
    func translated(_ message: String) -> String {
        let names =
            switch self {
            case .linking: LinkingCalls.memberNames
            case .identity, .alias: IdentityCalls.memberNames
            case .own: OwnCalls.memberNames
            case .openDSR: OpenDSRCalls.memberNames
            }
        return names.reduce(message) { $0.replacing($1.0, with: $1.1) }
    }

    /// Whether the body asks for a dry run.
    func isDryRun(_ body: JSONObject) throws(APIFailure) -> Bool {
        self == .identity ? try IdentityCalls.isReadOnly(body) : false
    }
}

/// Why a request gets no result. Each dialect writes it in its own words.
struct APIFailure: Error, Sendable, Equatable {
    var status: Int
    var code: String
    var message: String
    /// Seconds.
    var retryAfter: Int?
    /// A secret that was shown is not right: too many of these are not looked at.
    var isGuess = false
    /// The limit of the gateway that was reached.
    var limit: RequestLimits.Limit? { quota?.limit }
    /// The same, with what it allows.
    var quota: RequestLimits.Quota?

    init(_ status: Int, _ code: String, _ message: String, retryAfter: Int? = nil) {
        self.status = status
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
    }

    /// Why a request could not be read.
    init(_ why: UnreadableRequest) {
        let code =
            switch why {
            case .malformed, .host: "INVALID_REQUEST"
            case .method: "METHOD_NOT_IMPLEMENTED"
            case .expectation: "EXPECTATION_FAILED"
            }
        self.init(why.status, code, why.detail)
    }

    init(_ rejection: Rejection) {
        self.init(rejection.reason.httpStatus, rejection.reason.rawValue, rejection.message)
    }

    /// A rejection by a service. A reason that this version does not know is the caller's fault as far as we can tell.
    init(_ reply: CommandReply) {
        let reason = reply.reason.flatMap(ReasonCode.init(rawValue:))
        self.init(
            reason?.httpStatus ?? 400, Self.outwardCode(reason) ?? reply.reason ?? "INVALID_REQUEST",
            reason == .idReused
                ? Self.keyReused.message
                : reply.message ?? reason?.defaultMessage ?? "The request was rejected.")
        // Limits per user fill up again in seconds; outstanding authentication codes take minutes to run out.
        if status == 429 { retryAfter = code == "THROTTLED" ? 1 : 60 }
        switch reason {
        case .userCreationInProgress, .userLinkingInProgress, .sdkResetInProgress: retryAfter = 1
        default: break
        }
    }

    /// What is known about an authentication code is not for whoever tries codes.
    private static func outwardCode(_ reason: ReasonCode?) -> String? {
        switch reason {
        case .authCodeExpired, .authCodeUsed: ReasonCode.authCodeInvalid.rawValue
        default: nil
        }
    }

    static func invalid(_ message: String) -> APIFailure { APIFailure(400, "INVALID_REQUEST", message) }

    static func unauthenticated(_ message: String) -> APIFailure {
        APIFailure(401, ReasonCode.unauthenticated.rawValue, message)
    }

    static func throttled(_ quota: RequestLimits.Quota) -> APIFailure {
        let what =
            switch quota.limit {
            case .key: "requests with this API key"
            case .address: "requests from this address"
            case .credentials: "wrong credentials from this address"
            }
        var failure = APIFailure(
            429, ReasonCode.throttled.rawValue, "Too many \(what); try again later.", retryAfter: quota.seconds)
        failure.quota = quota
        return failure
    }

    static let originNotAllowed = APIFailure(
        403, "ORIGIN_NOT_ALLOWED", "Pages of this origin cannot call: gateway.origins of the app does not name it.")

    static let tooLarge = APIFailure(413, "REQUEST_TOO_LARGE", "The request is larger than this gateway accepts.")

    static let defect = APIFailure(
        500, ReasonCode.internalError.rawValue, "The gateway could not write the command; this is a defect.")

    static let timedOut = APIFailure(
        504, "REPLY_TIMEOUT",
        "No answer came in time and the command may still be carried out; repeat the request with the "
            + "same Idempotency-Key.")

    static let unavailable = APIFailure(
        503, "SERVICE_UNAVAILABLE", "The gateway cannot use its message bus at the moment.", retryAfter: 1)

    static let keyReused = APIFailure(
        Rejection(.idReused, "This Idempotency-Key was used for another request; use a new one."))

    static let full = APIFailure(
        503, "TOO_MANY_REQUESTS_IN_FLIGHT", "Too many requests are waiting for an answer; try again later.",
        retryAfter: 1)
}
