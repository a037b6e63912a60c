// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
public import Runtime

/// Decides sync commands. Pure: the same command, state and context give the same decision.
public struct SyncDecider {
    public typealias Decision = Runtime.Decision<SyncState.Change>

    let state: SyncState
    let context: DecisionContext
    /// How long an accepted alias waits, in milliseconds.
    let aliasDelay: Int64

    public init(_ state: SyncState, _ context: DecisionContext, aliasDelay: Int64) {
        self.state = state
        self.context = context
        self.aliasDelay = aliasDelay
    }

    /// The door. Rules refuse by throwing.
    public func decide(_ command: SyncCommand) -> Decision {
        do throws(Rejection) {
            return switch command {
            case .move(let operation, let request): try move(operation, request)
            case .search(let request): try search(request)
            case .modify(let command): try modify(command)
            case .alias(let command): try alias(command)
            case .detach(let command): try detach(command)
            case .allow(let command): try allow(command)
            case .restrict(let command): try restrict(command)
            case .importProfiles(let command): try importProfiles(command)
            case .applyAlias(let command): applyAlias(command)
            case .getUsers(let command): try users(command)
            case .erase(let command): try erase(command)
            case .forget(let command): try forget(command)
            case .keepErased(let command): try keepErased(command)
            case .getErasure(let query): try erasure(query)
            case .getProfile(let query): try profile(query)
            case .linked(let event): try linked(event)
            case .renamed(let event): try renamed(event)
            case .unlinked(let event): unlinked(event)
            case .answered(let answer): try take(answer)
            case .facts: .facts(context)
            case .expireProfile(let command): expire(command)
            case .expireDevice(let command): expire(command)
            case .fileRequest(let command): try file(command)
            case .getRequest(let query): try request(query)
            case .getRequests(let query): requests(query)
            case .cancelRequest(let command): try cancel(command)
            case .getRequestResults(let query): try results(query)
            case .processRequest(let command): try process(command)
            }
        } catch {
            return Decision(.rejected(error))
        }
    }

    // MARK: What several rules ask

    var app: AppID { context.app.id }
    var settings: SyncSettings { context.app.sync }

    static func namesNobody(_ type: IdentityType) -> Rejection {
        Rejection(.validationError, "The value of \(type.rawValue) names nobody.")
    }

    /// The command made a profile once that was erased since: it is old, and comes again from a log.
    var madeAnErasedProfile: Bool {
        var counter = 0
        while let profile = state.profile(app, state.newMPID(context, counter)) {
            if profile.isErased { return true }
            counter += 1
        }
        return false
    }
}
