// SPDX-License-Identifier: Apache-2.0

// Written by scripts/generate from docs/asyncapi.yaml.

/// Why a person is not active on an install that it is on; the strongest reason.
public enum InactiveBecause: String, WireEnum {
    /// What is known of the person is kept and not used (`sync.restrict`).
    case restricted
    /// The platform disabled the install, or deleted it.
    case disabled
    /// The person moved to another install.
    case superseded
    /// A tablet that came when a phone had the person (L22).
    case waitsForPhone
}

/// The device an install lives on. Only `kind` takes part in decisions (phones are preferred to tablets, L22).
public struct Device: Codable, Sendable, Hashable {
    public enum Kind: String, WireEnum {
        case phone, tablet, other
    }

    public var kind: Kind
    public var platform: String
    public var model: String?
    public var osVersion: String?

    public init(kind: Kind, platform: String, model: String? = nil, osVersion: String? = nil) {
        self.kind = kind
        self.platform = platform
        self.model = model
        self.osVersion = osVersion
    }

    func validate(_ path: @autoclosure () -> String) throws(Rejection) {
        try Validation.text(platform, "\(path()).platform")
        if let model { try Validation.text(model, "\(path()).model") }
        if let osVersion { try Validation.text(osVersion, "\(path()).osVersion") }
    }
}
