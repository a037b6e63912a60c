// SPDX-License-Identifier: Apache-2.0

// What is looked at in another order than docs/asyncapi.yaml says, or for more than a schema can say (`x-checked-by-hand`).

extension CreateUser {
    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        try device.validate("device")
        if let sdkVersion { try Validation.text(sdkVersion, "sdkVersion") }
        if let appVersion { try Validation.text(appVersion, "appVersion") }
        switch (authCode, appSecret, linking) {
        case (.some, nil, nil), (nil, .some, .some): return
        case (nil, .some, nil):
            throw Rejection(.invalidRequest, "data.linking is missing; linker or none goes with appSecret.")
        default:
            throw Rejection(.invalidRequest, "data needs either authCode, or appSecret and linking (linker or none).")
        }
    }
}

extension LinkUser {
    public func validate() throws(Rejection) {
        try Validation.id(installId, "installId")
        switch (authCode, linking) {
        case (.some, nil), (nil, .linker): return
        default: throw Rejection(.invalidRequest, "data needs either authCode, or linking with the value linker.")
        }
    }
}

extension VerificationCheck {
    public func validate() throws(Rejection) {
        guard userId?.isEmpty == false || userEmail?.isEmpty == false else {
            throw Rejection(.invalidRequest, "data needs userId, userEmail or both.")
        }
    }
}

extension GetProfile {
    public func validate() throws(Rejection) {
        guard (mpid == nil) != (identity == nil) else {
            throw Rejection(.invalidRequest, "data needs mpid or identity, and not both.")
        }
        if let after { try Validation.text(after, "after", atMost: 1000) }
        if let identity { try identity.validate("identity") }
    }
}

extension DetachIdentities {
    public func validate() throws(Rejection) {
        try Validation.entries(identities.count, "identities", atLeast: 1, atMost: Self.mostIdentities)
        for (index, identity) in identities.enumerated() { try identity.validate("identities[\(index)]") }
        guard toMPID != mpid else {
            throw Rejection(.invalidRequest, "data.toMPID is mpid itself; name another profile, or leave it out.")
        }
        try Validation.text(author, "author")
        try Validation.text(reason, "reason", atMost: 1000)
    }
}

extension FileRequest {
    public func validate() throws(Rejection) {
        try Validation.requestID(requestId, "requestId")
        guard (mpid == nil) != identities.isEmpty else {
            throw Rejection(.invalidRequest, "data needs either mpid or identities.")
        }
        guard everyHolder != true || kind == .erasure else {
            throw Rejection(.invalidRequest, "data.everyHolder is for an erasure: nobody gets several people's data.")
        }
        for (type, value) in identities.sorted(by: { $0.key < $1.key }) {
            try Validation.identityType(type, "identities")
            try Validation.identityValue(value, "identities.\(type)")
        }
        if let regulation { try Validation.text(regulation, "regulation", atMost: 40) }
        if let groupId { try Validation.text(groupId, "groupId") }
    }
}
