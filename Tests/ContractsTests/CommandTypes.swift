// SPDX-License-Identifier: Apache-2.0

import Contracts
import Link
import Runtime
import Sync
import User
import Verification

/// Every command that a service reads.
let commandTypes =
    LinkService.commandTypes + UserService.commandTypes + SyncService.commandTypes + VerificationService.commandTypes
