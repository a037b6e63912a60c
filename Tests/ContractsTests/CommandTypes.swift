// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime

@testable import CLI

/// Every command that a service reads.
let commandTypes = services.flatMap { $0.commandTypes }
