// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import Supervision

/// Every command that a service reads.
let commandTypes = services.flatMap { $0.commandTypes }
