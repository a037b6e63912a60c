// SPDX-License-Identifier: Apache-2.0

import Contracts
import Link
import Runtime
import Sync
import User
import Verification

let services: [any CommandService.Type] = [
    LinkService.self, UserService.self, SyncService.self, VerificationService.self,
]

/// Every command that a service reads.
let commandTypes = services.flatMap { $0.commandTypes }
