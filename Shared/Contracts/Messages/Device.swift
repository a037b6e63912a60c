// SPDX-License-Identifier: Apache-2.0

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

    func validate() throws(Rejection) {
        for (member, text) in [("platform", platform), ("model", model), ("osVersion", osVersion)] {
            if let text { try Validation.id(text, "device.\(member)") }
        }
    }
}
