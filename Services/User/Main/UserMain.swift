// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Runtime
import User

@main
struct UserMain {
    static func main() async {
        await ServiceMain.run(UserService())
    }
}
