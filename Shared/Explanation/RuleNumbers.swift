// SPDX-License-Identifier: Apache-2.0

package import Contracts
import WireJSON

/// Which numbered rule of a service's page a decision followed, as far as its reason or its result names one. Codes that
/// several rules end with have none here: a wrong number is worse than none.
package enum RuleNumbers {
    /// By service, then by reason code.
    package static let ofRefusals: [String: [ReasonCode: String]] = [
        "link": [
            .userLinkingNotConfigured: "L4", .installDoesNotBelongToApp: "L6", .externalIDChanged: "L66",
            .installLinkedToOtherUser: "L8", .installDeactivated: "L10", .linkBarred: "L74", .userErased: "L37",
            .externalIDTaken: "L68", .limitExceeded: "L69", .throttled: "L40",
        ],
        "user": [
            .authCodeUsed: "U4", .authCodeLimitReached: "U10", .userAlreadyExists: "U12", .appSecretInvalid: "U23",
            .cannotLinkExistingPersonToOtherPerson: "U26", .userErased: "U34", .userDisabledRemotely: "U65",
            .userCreationInProgress: "U68",
        ],
        "sync": [
            .aliasingNotProvisioned: "S39", .mergeBarred: "S129", .restricted: "S139", .verificationRequired: "S47",
            .profileErased: "S57", .throttled: "S65",
        ],
        "verification": [
            .authTokenNotProvided: "V27", .invalidAuthToken: "V28", .identitiesDataInvalid: "V20",
            .identitiesSizeLimitExceeded: "V20", .identityFeatureNotEnabled: "V20", .uidOrEmailIsMandatory: "V20",
            .iatIsMandatory: "V20", .profileErased: "V54",
        ],
    ]

    /// Of the sync service, by what its results call ``SyncRule``.
    package static let ofSync: [SyncRule: String] = [
        .createdForOtherLogin: "S9", .createdBesideUnvouched: "S74", .createdBesideRestricted: "S138", .kept: "S89",
    ]

    package static func number(of fact: Fact) -> String? {
        if let reason = fact.reason.flatMap(ReasonCode.init(rawValue:)) { return ofRefusals[fact.service]?[reason] }
        return fact.result?["rule"]?.stringValue.flatMap(SyncRule.init(rawValue:)).flatMap { ofSync[$0] }
    }
}
