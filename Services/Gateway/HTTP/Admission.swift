// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Metrics
import Runtime

/// What is looked at before a request's body is read: who sends it, whether that may be, and whether it is too much.
extension API {
    /// - Parameter call: without the body.
    /// - Throws: why the rest of it is not wanted.
    func admit(_ call: Call, _ note: inout AccessNote) throws(APIFailure) -> Credential {
        let apps = bus.apps
        let named = Credentials.namedKey(call.request, call.route).flatMap { apps.key(KeyID($0)) }
        if Credentials.showsSecret(call.request) { try limits.checkGuessing(call.request.client) }
        let credential = try counted(call.request, named?.key.id) { () throws(APIFailure) in
            let credential = try authenticate(call, apps)
            // Whoever shows no more than an id is not told whether there is such a key.
            if case .shown(let caller) = credential, !caller.principal.scopes.contains(call.command.type.scope) {
                throw Credentials.refused
            }
            return credential
        }
        switch credential {
        case .held(let caller):
            try permit(caller, call, &note)
            try takeShares(caller, call, isProved: true)
        case .shown(let caller):
            try permit(caller, call, &note)
            try takeShares(caller, call, isProved: false)
        // What it proves is not known yet: until then it is told nothing about the key that it names, and takes nothing
        // from it.
        case .signature: break
        }
        return credential
    }

    /// The same for what the gateway answers itself.
    func admit(
        _ request: APIRequest, _ route: Route, _ reading: Endpoint.Reading, _ note: inout AccessNote
    ) throws(APIFailure) -> Caller {
        let apps = bus.apps
        let named = Credentials.namedKey(request, route).flatMap { apps.key(KeyID($0)) }
        if Credentials.showsSecret(request) { try limits.checkGuessing(request.client) }
        let credentials = Credentials(apps: apps, secrets: secrets, now: now())
        let caller = try counted(request, named?.key.id) { () throws(APIFailure) in
            try credentials.confirm(credentials.bearer(request), request)
        }
        note.app = caller.app.id
        note.settings = caller.app.gateway
        if let scopes = reading.scopes, caller.principal.scopes.isDisjoint(with: scopes) {
            let words = scopes.map(\.rawValue).joined(separator: " or ")
            throw APIFailure(Rejection(.insufficientScope, "This needs an API key with the scope \(words)."))
        }
        guard caller.app.gateway.admits(origin: request.header("Origin")) else { throw .originNotAllowed }
        guard case .apiKey(let id) = caller.principal.kind else { throw Credentials.refused }
        note.keyID = id
        try limits.takeKey(id, isProved: true, of: caller.app)
        return caller
    }

    private func permit(_ caller: Caller, _ call: Call, _ note: inout AccessNote) throws(APIFailure) {
        note.app = caller.app.id
        if case .apiKey(let id) = caller.principal.kind { note.keyID = id }
        note.settings = caller.app.gateway
        // The scope before the body's form, as services check it too (L2 and L3).
        do {
            try caller.principal.authorize(call.command.type)
        } catch {
            throw APIFailure(error)
        }
        guard caller.app.gateway.admits(origin: call.request.header("Origin")) else { throw .originNotAllowed }
        if case .apiKey = caller.principal.kind, call.callers.areTokens {
            throw APIFailure(Rejection(.userTokenRequired))  // U41
        }
    }

    /// The address first: who sends too much takes nothing from others with the same key.
    private func takeShares(_ caller: Caller, _ call: Call, isProved: Bool) throws(APIFailure) {
        if call.callers.areMany || !isProved { try limits.takeAddress(call.request.client, of: caller.app) }
        if case .apiKey(let id) = caller.principal.kind { try limits.takeKey(id, isProved: isProved, of: caller.app) }
    }

    /// The rest of the credential, which the body was needed for.
    func confirm(
        _ credential: Credential, _ call: Call, _ note: inout AccessNote
    ) throws(APIFailure) -> Caller {
        let credentials = Credentials(apps: bus.apps, secrets: secrets, now: now())
        guard case .signature(let signature) = credential else {
            return try credentials.confirm(credential, call.request)
        }
        let caller = try counted(call.request, signature.signer?.key.id) { () throws(APIFailure) in
            try credentials.confirm(credential, call.request)
        }
        try permit(caller, call, &note)
        try takeShares(caller, call, isProved: true)
        return caller
    }

    private func authenticate(_ call: Call, _ apps: AppDirectory) throws(APIFailure) -> Credential {
        let credentials = Credentials(apps: apps, secrets: secrets, now: now())
        return switch call.callers {
        case .identity(let operation): try credentials.identity(call.request, operation, pathKey: call.route.apiKey)
        case .device, .install: try credentials.device(call.request)
        case .expiredInstall: try credentials.device(call.request, inGrace: true)
        case .privacy: try credentials.backend(call.request)
        case .app, .backend, .page, .anybody: try credentials.bearer(call.request)
        }
    }

    /// - Parameter key: the id of the key that the request names; only those that there are, or anybody could make up
    ///   labels.
    private func counted<Checked>(
        _ request: APIRequest, _ key: KeyID?, _ check: () throws(APIFailure) -> Checked
    ) throws(APIFailure) -> Checked {
        do throws(APIFailure) {
            return try check()
        } catch {
            count(error, request, key)
            throw error
        }
    }

    private func count(_ failure: APIFailure, _ request: APIRequest, _ key: KeyID?) {
        guard failure.status == 401 else { return }
        Counter(label: "gateway_unauthorized", dimensions: [("key", key?.text ?? "unknown")]).increment()
        if failure.isGuess { limits.countGuess(request.client) }
    }
}
