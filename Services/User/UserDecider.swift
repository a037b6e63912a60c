// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
public import Runtime

/// Decides user commands, and what the link service says. Pure: the same command, state and context give the same
/// decision.
///
/// Every state, every command, and the answer. `…` means `pending` now and the rest later.
///
/// | state | create | link | confirm-link | reset | get |
/// |---|---|---|---|---|---|
/// | none | … user | `NO_USER` | `NO_USER` | … done | `NO_USER` |
/// | creating | `USER_CREATION_IN_PROGRESS` (1) | `USER_CREATION_IN_PROGRESS` | `NO_LINKING_IN_PROGRESS` | … done (2) | `USER_CREATION_IN_PROGRESS` |
/// | awaiting-link, creation | `USER_CREATION_IN_PROGRESS` | `USER_CREATION_IN_PROGRESS` | … (3) | … done (4) | `USER_CREATION_IN_PROGRESS` |
/// | confirming, creation | `USER_CREATION_IN_PROGRESS` | `USER_CREATION_IN_PROGRESS` | … (5) | … done (2) | `USER_CREATION_IN_PROGRESS` |
/// | present, unlinked | `USER_ALREADY_EXISTS` | … user (6) | `NO_LINKING_IN_PROGRESS` | … done | user |
/// | present, linked | `USER_ALREADY_EXISTS` (7) | `USER_ALREADY_LINKED` (7) | success: user; else `NO_LINKING_IN_PROGRESS` | … done | user |
/// | linking | `USER_ALREADY_EXISTS` | `USER_LINKING_IN_PROGRESS` (1) | `NO_LINKING_IN_PROGRESS` | … done (2) | user |
/// | awaiting-link, link | `USER_ALREADY_EXISTS` | `USER_LINKING_IN_PROGRESS` | … (8) | … done (4) | user |
/// | confirming, link | `USER_ALREADY_EXISTS` | `USER_LINKING_IN_PROGRESS` | … (5) | … done (2) | user |
/// | resetting | `SDK_RESET_IN_PROGRESS` | `SDK_RESET_IN_PROGRESS` | `SDK_RESET_IN_PROGRESS` | … done | `SDK_RESET_IN_PROGRESS` |
///
/// 1. The same code again joins: both commands get the same answer.
/// 2. What goes on ends first; its commands are told `SDK_RESET_IN_PROGRESS`.
/// 3. Success: the link service is asked; the user when it knows of the link. Otherwise, and when the app says that it
///    failed: the install is reset, and both commands are told `APP_SIDE_LINKING_FAILED`.
/// 4. The command that waits for the linker is told `SDK_RESET_IN_PROGRESS` at once.
/// 5. Joins the confirmation that goes on.
/// 6. `USER_DISABLED_REMOTELY` when the platform disabled the install.
/// 7. The same command again, with the code that brought the user or its link, gets the user.
/// 8. As 3, but a failure is told at once and leaves the user as it is, unlinked.
///
/// `user.forget` ends whatever the state is: all commands that wait are told `USER_ERASED`, a reset is done.
///
/// A linker that takes too long expires: the waiting command is told `expired`, a creation is reset.
/// One command to the link service at most is on its way for an install, except that those about the install itself
/// may follow each other: they share a key, and with it their order.
public enum UserDecider {
    public typealias Decision = Runtime.Decision<UserState.Change>

    public static func decide(_ command: UserCommand, _ state: UserState, _ context: DecisionContext) -> Decision {
        if let id = command.installID,
            let refusal = refusal(of: command, state.install(context.app.id, id), context)
        {
            return Decision(.rejected(refusal))
        }
        return switch command {
        case .requestAuthCode(let request): issueCode(request, state, context)
        case .create(let command): create(command, state, context)
        case .link(let command): link(command, state, context)
        case .confirmLink(let command): confirm(command, state, context)
        case .reset(let command): reset(command, state, context)
        case .get(let command): get(command, state, context)
        case .expireLinker(let command): expire(command, state, context)
        case .answered(let answer): take(answer, state, context)
        case .linked(let event): note(event.installId, state, context) { _ in LinkFacts(event) }
        case .statusChanged(let event): note(event.installId, state, context) { LinkFacts(event, $0) }
        case .detached(let event): note(event.installId, state, context) { LinkFacts(event, $0) }
        case .forget(let command): forget(command, state, context)
        }
    }

    /// A user token opens the installs of its user, an install token the install that its creation made, and neither any
    /// other. An API key may be told to open none: then it creates users, and that is all.
    private static func refusal(
        of command: UserCommand, _ install: Installation?, _ context: DecisionContext
    ) -> Rejection? {
        switch context.principal.kind {
        case .service: return nil
        case .user(let userID):
            if let own = install?.facts.userID, ExactText(own) == ExactText(userID) { return nil }
            return Rejection(.userTokenNotAllowed, "This user token is not of the user of this install.")
        case .install(let creation):
            if let own = install?.creation, ExactText(own) == ExactText(creation) { return nil }
            return Rejection(
                .userTokenNotAllowed, "This install token is not of this install, or is from before a reset.")
        case .apiKey:
            if context.app.sdk.keysOpenInstalls { return nil }
            if case .create = command { return nil }
            return Rejection(.userTokenRequired)
        }
    }

    private static func get(_ command: GetUser, _ state: UserState, _ context: DecisionContext) -> Decision {
        guard let install = state.install(context.app.id, command.installId) else { return .rejected(.noUser) }
        guard !install.hasUser else { return Decision(outcome(install, context)) }
        return .rejected(install.phase == .resetting ? .sdkResetInProgress : .userCreationInProgress)
    }
}
