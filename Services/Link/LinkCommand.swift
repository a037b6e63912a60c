// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// Everything the link service consumes. Closed: a command without an answer does not compile.
public enum LinkCommand: Sendable, Hashable {
    case request(LinkRequest)
    case registerInstall(RegisterInstall)
    case establish(EstablishLink)
    case query(QueryInstall)
    case detachInstall(DetachInstall)
    case setInstallStatus(SetInstallStatus)
    case eraseUser(EraseUser)
    case forget(ForgetPerson)
    /// What another service answered to a command of ours.
    case answered(ForgetAnswer)

    /// The install the command is about, if it is about one.
    var installID: String? {
        switch self {
        case .request(let command): command.installId
        case .registerInstall(let command): command.installId
        case .establish(let command): command.installId
        case .query(let command): command.installId
        case .detachInstall(let command): command.installId
        case .setInstallStatus(let command): command.installId
        case .eraseUser, .forget, .answered: nil
        }
    }

    /// The external id the command names, if it names one.
    var externalID: String? {
        switch self {
        case .request(let command): command.externalId
        case .establish(let command): command.externalId
        case .forget(let command): command.externalId
        case .registerInstall, .query, .detachInstall, .setInstallStatus, .eraseUser, .answered: nil
        }
    }

    /// The user the command names, if it names one.
    var userID: String? {
        switch self {
        case .eraseUser(let command): command.userId
        case .forget(let command): command.userId
        default: nil
        }
    }

    /// Whether the command erases whom it names.
    var erases: Bool {
        switch self {
        case .eraseUser, .forget: true
        default: false
        }
    }

    /// Whether the command may bring a person to life, whose id then comes from the command's.
    var mayCreatePerson: Bool {
        switch self {
        case .request, .establish: true
        case .registerInstall(let command): command.user == .new
        case .query, .detachInstall, .setInstallStatus, .eraseUser, .forget, .answered: false
        }
    }
}
