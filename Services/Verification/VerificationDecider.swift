// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
public import Runtime
import Storage

/// Decides verification commands. Pure: the same command, state and context give the same decision.
///
/// Logins that pass and logouts are forwarded to the sync service, and show when that has done them: what is told is true
/// by then, and the two session-changed events of a switch of accounts (the one who was there goes, the new one comes)
/// stand in one decision. Refused and anonymous logins show at once. Every command of a device has a number; the answer
/// to one that a later command has overtaken changes nothing. What a session may do is judged by the settings of the
/// moment whenever it is looked at.
public struct VerificationDecider {
    public typealias Decision = Runtime.Decision<SessionState.Change>

    let state: SessionState
    let context: DecisionContext

    public init(_ state: SessionState, _ context: DecisionContext) {
        self.state = state
        self.context = context
    }

    /// The door. Rules refuse by throwing; a refused login changes its session, and is a decision like any other.
    public func decide(_ command: VerificationCommand) -> Decision {
        do throws(Rejection) {
            return switch command {
            case .login(let login): enter(.of(login, settings, now: context.now), login.deviceId)
            case .loginIdentity(let login): enter(.of(login, settings, now: context.now), login.deviceId)
            case .logout(let logout): leave(logout.deviceId)
            case .synced(let answer): take(answer)
            case .moved(let device, let move): follow(device, move)
            case .check(let command): try check(command)
            case .getSession(let command): show(command)
            case .facts: .facts(context)
            case .review(let command): review(command)
            case .usage: usage()
            case .forget(let command): forget(command)
            case .expire(let command): expire(command)
            }
        } catch {
            return Decision(.rejected(error))
        }
    }

    // MARK: What several rules ask

    var settings: VerificationSettings { context.app.verification }

    /// The device's session; a new one for a device that is not known.
    func session(_ deviceID: DeviceID) -> Session {
        state.session(app: context.app.id, deviceID: deviceID) ?? Session(app: context.app.id, deviceID: deviceID)
    }

    /// What a refusal leaves: not anonymous, and nothing may be done.
    static let unverified = VerificationResult(state: .unverified, mayFileIssues: false)
}
