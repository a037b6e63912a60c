// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts

@testable import Link
@testable import User

/// The user service as one synchronous program over the platform's one record of links (``NaiveLinks``): no sagas, no
/// messages, no memory of what the platform said, no decider. What a device is told is looked up on the spot.
struct NaiveUserModel {
    enum Device: Equatable {
        case none
        case awaiting(command: CommandID, isCreation: Bool, deadline: Int64)
        case present
    }

    struct Code {
        var app: AppID
        var externalID: ExternalID
        var expires: Int64
        var isUsed = false
    }

    private(set) var platform = NaiveLinks()
    private(set) var devices: [String: Device] = [:]
    private(set) var codes: [String: Code] = [:]
    /// Per device and purpose, the code that the same command may come again with.
    private var redeemed: [String: String] = [:]
    private var erased: Set<UserID> = []
    /// All that was told of codes, of how creations ended and of users that were taken off, from the beginning. What
    /// else became of a user is seen by looking twice: ``news(since:by:)``.
    private(set) var told: [any EventMessage] = []

    struct Told {
        var answer: Answer
        /// Commands that waited and are told now.
        var settled: [CommandID: Answer] = [:]
        init(_ answer: Answer, settled: [CommandID: Answer] = [:]) {
            self.answer = answer
            self.settled = settled
        }
        static func no(_ reason: ReasonCode) -> Told { Told(.rejected(reason)) }
    }

    // MARK: The platform

    /// - Returns: why the platform refused it.
    @discardableResult
    mutating func ask(_ command: LinkCommand, _ app: AppSettings) -> ReasonCode? {
        platform.run(command, app, now: now, made: made)
    }

    /// When the present command was decided, and when it was made, if that was earlier.
    var now: Int64 = 0
    var made: Int64 = 0

    func install(_ id: InstallID) -> NaiveLinks.InstallRow? { platform.installs[id] }

    func isLinked(_ id: InstallID) -> Bool { externalID(id) != nil }

    private func externalID(_ id: InstallID) -> ExternalID? {
        install(id)?.user.flatMap { platform.persons[$0]?.externalID }
    }

    /// The same, looked at for one app.
    func seen(in app: AppID) -> NaiveUserModel {
        var model = self
        model.platform.look(at: app)
        return model
    }

    func isRemoteEnabled(_ id: InstallID) -> Bool {
        install(id).map { $0.activity == .active && $0.status == .enabled } ?? false
    }

    private func user(_ id: InstallID) -> Answer {
        guard let user = install(id)?.user else { return .rejected(.noUser) }
        return .user(user.text, isLinked: isLinked(id), isRemoteEnabled: isRemoteEnabled(id))
    }

    // MARK: Commands

    mutating func run(_ command: UserCommand, _ id: CommandID, _ app: AppSettings, now: Int64, code: String?) -> Told {
        (self.now, made) = (now, now)
        platform.look(at: app.id)
        guard let installID = command.installID else { return issue(command, app, now, code) }
        let device = "\(app.id)/\(installID)"
        forgetLost(device, installID)
        switch (command, devices[device] ?? .none) {
        case (.create(let command), .none):
            let answer = create(command, id, device, app, now)
            if case .rejected(let reason) = answer.answer { failed(installID, reason) }
            return answer
        // Who was unlinked may be waiting for a link.
        case (.create(let command), .present) where hasBrought(command.authCode, device),
            (.create(let command), .awaiting(_, false, _)) where hasBrought(command.authCode, device):
            return Told(user(installID))
        case (.create(let command), .present)
        where command.authCode != nil && isLinked(installID) && install(installID)?.status == .enabled
            && !isRemoteEnabled(installID):
            return electAnew(command, device, app, now)
        case (.create, .present), (.create, .awaiting(_, false, _)): return .no(.userAlreadyExists)
        case (.create, .awaiting): return .no(.userCreationInProgress)

        case (.link, .none), (.confirmLink, .none), (.get, .none): return .no(.noUser)
        case (.link, .awaiting(_, let isCreation, _)):
            return .no(isCreation ? .userCreationInProgress : .userLinkingInProgress)
        case (.link(let command), .present): return link(command, id, device, app, now)

        case (.confirmLink(let command), .present):
            return command.success && isLinked(installID) ? Told(user(installID)) : .no(.noLinkingInProgress)
        case (.confirmLink(let command), .awaiting(let waiting, let isCreation, _)):
            let isSomebodyElse = command.externalId.map { $0 != externalID(installID) } ?? false
            guard command.success, isLinked(installID), !isSomebodyElse else {
                if isCreation {
                    ask(.detachInstall(DetachInstall(installId: installID, cause: .creationFailed)), app)
                    devices[device] = nil
                    self.failed(installID, .appSideLinkingFailed)
                } else {
                    devices[device] = .present
                }
                let failed = Answer.rejected(.appSideLinkingFailed)
                return Told(failed, settled: [waiting: failed])
            }
            devices[device] = .present
            if isCreation { arrived(installID) }
            return Told(user(installID), settled: [waiting: user(installID)])

        case (.get, .awaiting(_, true, _)): return .no(.userCreationInProgress)
        case (.get, _): return Told(user(installID))

        case (.reset, let state): return reset(device, installID, state, app)
        default: return Told(.noted)
        }
    }

    /// Whether the user came by this code, while it could have been redeemed.
    private func hasBrought(_ code: String?, _ device: String) -> Bool {
        guard let code, redeemed["\(device) create"] == code else { return false }
        return codes[code].map { $0.expires > now } == true
    }

    private mutating func forgetLost(_ device: String, _ installID: InstallID) {
        guard let state = devices[device] else { return }
        switch state {
        case .present where install(installID)?.user == nil: devices[device] = nil
        default: break
        }
    }

    private mutating func issue(_ command: UserCommand, _ app: AppSettings, _ now: Int64, _ text: String?) -> Told {
        guard case .requestAuthCode(let request) = command else { return Told(.noted) }
        if !app.linking.isEnabled { return .no(.userLinkingNotConfigured) }
        if (try? app.linking.check(externalID: request.externalId)) == nil { return .no(.invalidRequest) }
        let open = codes.values.filter {
            $0.app == app.id && $0.externalID == request.externalId && !$0.isUsed && $0.expires > now
        }
        if open.count >= app.sdk.maxOutstandingCodes { return .no(.authCodeLimitReached) }
        guard let text else { return Told(.noted) }
        let expires = now + app.sdk.authCodeLifetime
        codes[text] = Code(app: app.id, externalID: request.externalId, expires: expires)
        told.append(AuthCodeIssued(externalId: request.externalId, expiresAt: Timestamp(milliseconds: expires)))
        return Told(.code(text))
    }

    private func refusal(_ text: String, _ app: AppSettings, _ now: Int64) -> ReasonCode? {
        guard let code = codes[text], code.app == app.id else { return .authCodeInvalid }
        if code.isUsed { return .authCodeUsed }
        return code.expires <= now ? .authCodeExpired : nil
    }

    private mutating func create(
        _ command: CreateUser, _ id: CommandID, _ device: String, _ app: AppSettings, _ now: Int64
    ) -> Told {
        let detach = LinkCommand.detachInstall(DetachInstall(installId: command.installId, cause: .leftover))
        if let text = command.authCode {
            if let refusal = self.refusal(text, app, now) { return .no(refusal) }
            let establish = LinkCommand.establish(
                EstablishLink(
                    installId: command.installId, device: command.device, externalId: codes[text]?.externalID ?? "",
                    mode: .create))
            var refusal = ask(establish, app)
            if refusal == .installLinkedToOtherUser || refusal == .cannotLinkExistingPersonToOtherPerson {
                ask(detach, app)
                refusal = ask(establish, app)
            }
            if let refusal { return .no(refusal) }
            codes[text]?.isUsed = true
            redeemed["\(device) create"] = text
        } else {
            guard command.appSecret == Fixture.secret, app.sdk.appSecret != nil else { return .no(.appSecretInvalid) }
            if command.linking == .linker, !app.linking.isEnabled { return .no(.userLinkingNotConfigured) }
            let register = LinkCommand.registerInstall(
                RegisterInstall(
                    installId: command.installId, device: command.device,
                    user: command.linking == .linker ? .none : .new))
            // Nobody takes over whom an earlier life left here.
            let isTaken = install(command.installId)?.user != nil
            let refusal = ask(register, app)
            if let refusal, refusal != .userAlreadyExists { return .no(refusal) }
            if isTaken {
                ask(detach, app)
                ask(register, app)
            }
            if command.linking == .linker {
                devices[device] = .awaiting(command: id, isCreation: true, deadline: now + app.sdk.linkerTimeout)
                redeemed["\(device) create"] = nil
                redeemed["\(device) link"] = nil
                return Told(.pending(.linker))
            }
            redeemed["\(device) create"] = nil
        }
        redeemed["\(device) link"] = nil
        devices[device] = .present
        arrived(command.installId)
        return Told(user(command.installId))
    }

    /// The user's own external id brings it back to life on an install where it is already.
    private mutating func electAnew(
        _ command: CreateUser, _ device: String, _ app: AppSettings, _ now: Int64
    ) -> Told {
        guard let text = command.authCode, let install = install(command.installId) else { return Told(.noted) }
        if let refusal = refusal(text, app, now) { return .no(refusal) }
        guard let externalID = codes[text]?.externalID, externalID == self.externalID(command.installId) else {
            let isKept = codes[text].map { platform.keeps($0.externalID, in: app.id) } == true
            return .no(isKept ? .externalIDChanged : .userAlreadyExists)
        }
        ask(
            .establish(
                EstablishLink(
                    installId: command.installId, device: install.device, externalId: externalID, mode: .create)), app)
        codes[text]?.isUsed = true
        redeemed["\(device) create"] = text
        redeemed["\(device) link"] = nil
        return Told(user(command.installId))
    }

    private mutating func link(
        _ command: LinkUser, _ id: CommandID, _ device: String, _ app: AppSettings, _ now: Int64
    ) -> Told {
        if let text = command.authCode, redeemed["\(device) link"] == text { return Told(user(command.installId)) }
        if isLinked(command.installId) { return .no(.userAlreadyLinked) }
        guard let install = install(command.installId), install.activity == .active, install.status == .enabled else {
            return .no(.userDisabledRemotely)
        }
        if !app.linking.isEnabled { return .no(.userLinkingNotConfigured) }
        guard let text = command.authCode else {
            devices[device] = .awaiting(command: id, isCreation: false, deadline: now + app.sdk.linkerTimeout)
            return Told(.pending(.linker))
        }
        if let refusal = refusal(text, app, now) { return .no(refusal) }
        let establish = LinkCommand.establish(
            EstablishLink(
                installId: command.installId, device: install.device, externalId: codes[text]?.externalID ?? "",
                mode: .linkExistingUser))
        if let refusal = ask(establish, app) { return .no(refusal) }
        codes[text]?.isUsed = true
        redeemed["\(device) link"] = text
        redeemed["\(device) create"] = nil
        return Told(user(command.installId))
    }

    private mutating func reset(
        _ device: String, _ installID: InstallID, _ state: Device, _ app: AppSettings
    ) -> Told {
        devices[device] = nil
        let user = state == .none ? nil : install(installID)?.user
        var settled: [CommandID: Answer] = [:]
        var cause = DetachInstall.Cause.reset
        if case .awaiting(let waiting, let isCreation, _) = state {
            settled[waiting] = .rejected(.sdkResetInProgress)
            if isCreation {
                cause = .creationFailed
                failed(installID, .sdkResetInProgress)
            }
        }
        ask(.detachInstall(DetachInstall(installId: installID, cause: cause)), app)
        told.append(UserReset(installId: installID, userId: user))
        return Told(.reset, settled: settled)
    }

    // MARK: What happens by itself

    /// Linkers that took too long.
    mutating func expire(now: Int64, _ app: (AppID) -> AppSettings) -> [CommandID: Answer] {
        var settled: [CommandID: Answer] = [:]
        for (device, state) in devices {
            guard case .awaiting(let command, let isCreation, let deadline) = state, deadline <= now else { continue }
            settled[command] = .expired
            let parts = device.split(separator: "/").map(String.init)
            if isCreation {
                let detach = DetachInstall(installId: InstallID(parts[1]), cause: .creationFailed)
                ask(.detachInstall(detach), app(AppID(parts[0])))
                devices[device] = nil
                failed(InstallID(parts[1]), nil)
            } else {
                devices[device] = .present
            }
        }
        return settled
    }

    /// Codes of a name that support changed are nobody's.
    mutating func rename(_ command: ChangeExternalID, _ app: AppSettings) {
        guard ask(.changeExternalID(command), app) == nil, command.externalId != command.newExternalId else { return }
        codes = codes.filter { $0.value.app != app.id || $0.value.externalID != command.externalId }
    }

    /// Whoever is called so next did not ask for the codes.
    mutating func unlink(_ command: UnlinkUser, _ app: AppSettings) {
        let name = platform.persons[command.userId]?.externalID
        guard ask(.unlink(command), app) == nil, let name else { return }
        for (text, code) in codes where code.app == app.id && code.externalID == name { codes[text] = nil }
    }

    /// A user was erased: who waits with it is told.
    mutating func erase(_ user: UserID, _ app: AppSettings) -> [CommandID: Answer] {
        platform.look(at: app.id)
        let installs = platform.installs.filter { $0.value.user == user }.keys
        let externalID = platform.persons[user]?.externalID
        if ask(.eraseUser(EraseUser(userId: user)), app) != nil { return [:] }
        codes = codes.filter { $0.value.app != app.id || $0.value.externalID != externalID }
        var settled: [CommandID: Answer] = [:]
        for install in installs {
            let device = "\(app.id)/\(install)"
            if case .awaiting(let waiting, _, _) = devices[device] { settled[waiting] = .rejected(.userErased) }
            switch devices[device] ?? .none {
            case .none: break
            case .awaiting(_, true, _): failed(install, .userErased)
            case .awaiting, .present: told.append(UserDeactivated(installId: install, userId: nil, cause: .erased))
            }
            devices[device] = nil
        }
        if erased.insert(user).inserted { told.append(UserForgotten(userId: user)) }
        return settled
    }

    // MARK: What is told

    private mutating func failed(_ id: InstallID, _ reason: ReasonCode?) {
        told.append(UserCreationFailed(installId: id, reason: reason))
    }

    /// Created where it came to life, restored anywhere else (U13, U14).
    private mutating func arrived(_ id: InstallID) {
        guard let user = install(id)?.user else { return }
        told.append(
            platform.persons[user]?.birthplace == id
                ? UserCreated(
                    installId: id, userId: user, isLinked: isLinked(id), isRemoteEnabled: isRemoteEnabled(id))
                : UserRestored(installId: id, userId: user, isRemoteEnabled: isRemoteEnabled(id)))
    }
}
