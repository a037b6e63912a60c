// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Testing

@testable import Runtime
@testable import User

/// Who may do what with an install: its user's token, its own token, an API key.
@Suite struct DeviceAccessTests {
    private static let commands: [UserCommand] = [
        .get(GetUser(installId: "i1")), .reset(ResetUser(installId: "i1")),
        .link(LinkUser(installId: "i1", authCode: "fresh")), .confirmLink(ConfirmLink(installId: "i1", success: true)),
    ]

    private func state(_ state: Installation.State) -> UserState {
        UserState(installs: [Installation(app: "demo", id: "i1", state)], codes: [Fixture.code("fresh", "bert")])
    }

    private func state(creation: String = "life-1") -> UserState {
        state(.present(Fixture.account(isLinked: false, creation: creation)))
    }

    private func creating(_ step: Creation.Step, creation: String = "life-1") -> UserState {
        state(
            .creating(
                Creation(
                    registration: Registration(device: Fixture.phone, creation: creation), moment: Fixture.start,
                    facts: Fixture.facts(),
                    commands: Beginners(Waiting(Fixture.key("begun"))), step: step)))
    }

    private func isRefused(
        _ command: UserCommand, _ kind: Principal.Kind, in state: UserState, _ app: AppSettings = Fixture.app
    ) -> ReasonCode? {
        guard case .rejected(let reason) = UserDecider.decide(command, state, Fixture.context(app, as: kind)).answer
        else { return nil }
        return [.userTokenNotAllowed, .userTokenRequired].contains(reason) ? reason : nil
    }

    @Test func anInstallTokenOpensItsInstallInThisLife() {
        for command in Self.commands {
            let turn = Creation.Step.awaitingLinker(deadline: Fixture.start)
            for state in [state(), creating(turn)] {
                #expect(isRefused(command, .install("life-1"), in: state) == nil)
                #expect(isRefused(command, .install("life-2"), in: state) == .userTokenNotAllowed)
            }
            let unknown = Reset(cause: .commandForUnknown, facts: Fixture.facts(), resets: [], forward: "f1")
            #expect(isRefused(command, .install(""), in: state(.resetting(unknown))) == .userTokenNotAllowed)
            #expect(isRefused(command, .install("life-1"), in: UserState()) == .userTokenNotAllowed)
        }
        let create = CreateUser(installId: "i2", device: Fixture.phone, authCode: "fresh")
        #expect(isRefused(.create(create), .install("life-1"), in: state()) == .userTokenNotAllowed)
        let code = RequestAuthCode(externalId: "anna")
        #expect(UserCommand.requestAuthCode(code).installID == nil)
    }

    /// U75.
    @Test func anExpiredTokenReadsAndResetsItsInstallInThisLife() {
        for command in Self.commands {
            let isAllowed =
                switch command {
                case .get, .reset: true
                default: false
                }
            let turn = Creation.Step.awaitingLinker(deadline: Fixture.start)
            for state in [state(), creating(turn)] {
                #expect(
                    isRefused(command, .expiredInstall("life-1"), in: state) == (isAllowed ? nil : .userTokenNotAllowed)
                )
                #expect(isRefused(command, .expiredInstall("life-2"), in: state) == .userTokenNotAllowed)
            }
            #expect(isRefused(command, .expiredInstall("life-1"), in: UserState()) == .userTokenNotAllowed)
            for status in [InstallStatus.disabled, .deleted] {
                let account = Fixture.account(isLinked: false, status: status, creation: "life-1")
                #expect(
                    isRefused(command, .expiredInstall("life-1"), in: state(.present(account))) == .userTokenNotAllowed)
            }
        }
        let superseded = state(.present(Fixture.account(isActive: false, creation: "life-1")))
        #expect(isRefused(.get(GetUser(installId: "i1")), .expiredInstall("life-1"), in: superseded) == nil)
    }

    @Test func aUserTokenOpensTheInstallsOfItsUser() {
        for command in Self.commands {
            #expect(isRefused(command, .user(Fixture.userID), in: state()) == nil)
            #expect(isRefused(command, .user("5a18fc4b0962209e0000000e"), in: state()) == .userTokenNotAllowed)
            #expect(isRefused(command, .user(Fixture.userID), in: UserState()) == .userTokenNotAllowed)
        }
    }

    @Test func installsAreClosedToKeysUnlessTheAppOpensThem() {
        let closed = AppSettings(
            id: "demo", sdk: SDKSettings(appSecret: AppSecret(Fixture.secret)))
        for command in Self.commands {
            #expect(isRefused(command, .apiKey("k"), in: state()) == nil)
            for state in [state(), UserState()] {
                #expect(isRefused(command, .apiKey("k"), in: state, closed) == .userTokenRequired)
            }
            #expect(isRefused(command, .service, in: state(), closed) == nil)
            #expect(isRefused(command, .install("life-1"), in: state(), closed) == nil)
        }
        let create = CreateUser(installId: "i2", device: Fixture.phone, appSecret: Fixture.secret, linking: .linker)
        #expect(isRefused(.create(create), .apiKey("k"), in: UserState(), closed) == nil)
    }

    /// Two creations are two lives, also when the same command comes again after the inbox has forgotten it.
    @Test func eachCreationIsALifeOfItsOwn() throws {
        let create = UserCommand.create(
            CreateUser(installId: "i1", device: Fixture.phone, appSecret: Fixture.secret, linking: .linker))
        func creation(_ id: CommandID, now: Timestamp = Fixture.start) throws -> String {
            let decision = UserDecider.decide(create, UserState(), Fixture.context(id: id, now: now))
            return try #require(UserState().after(decision).install("demo", "i1")?.creation)
        }
        #expect(try creation("c1") == creation("c1"), "deciding twice gives the same")
        let later = Timestamp(milliseconds: Fixture.start.milliseconds + 1)
        #expect(try Set([creation("c1"), creation("c2"), creation("c1", now: later)]).count == 3)
    }

    @Test func theAnswersCarryTheInstallToken() throws {
        let told = UserDecider.decide(.get(GetUser(installId: "i1")), state(), Fixture.context())
        guard case .succeeded(let result as UserResult) = told.outcome else { throw Unexpected() }
        #expect(result.installToken.tokenId != result.token.tokenId)
        func pending(_ state: UserState) throws -> PendingUser {
            let decider = UserDecider(state, Fixture.context())
            guard case .pending(let told as PendingUser) = decider.pending(try #require(state.install("demo", "i1")))
            else { throw Unexpected() }
            return told
        }
        let turn = try pending(creating(.awaitingLinker(deadline: Fixture.start)))
        #expect(turn.awaiting == .linker && turn.installToken != nil)
        let wait = try pending(creating(.asking(.init(want: .user(by: .unlinked), forward: "f1"))))
        #expect(wait.awaiting == .platform && wait.installToken == nil)
    }

    /// Who finds a code after its time gets nobody's user for it, also on the install that redeemed it.
    @Test func aRedeemedCodeIsGoodNoLongerThanItsTime() throws {
        let install = Fixture.present(Fixture.account(isLinked: false, redeemed: ("held", .create)))
        let again = UserCommand.create(CreateUser(installId: "i1", device: Fixture.phone, authCode: "held"))
        let state = UserState(installs: [install], codes: [Fixture.code("held", use: .used(installID: "i1"))])
        func answer(_ state: UserState, _ minutes: Int64) -> Answer {
            let now = Timestamp(milliseconds: Fixture.start.milliseconds + minutes * Fixture.minute)
            return UserDecider.decide(again, state, Fixture.context(now: now, as: .apiKey("k"))).answer
        }
        #expect(answer(state, 9) == .user(Fixture.userID.text, isLinked: false, isRemoteEnabled: true))
        #expect(answer(state, 10) == .rejected(.userAlreadyExists))
        #expect(answer(UserState(installs: [install]), 9) == .rejected(.userAlreadyExists), "it is forgotten")
    }

    private struct Unexpected: Error {}
}
