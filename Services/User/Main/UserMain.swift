// SPDX-License-Identifier: Apache-2.0

import Runtime
import User

@main
struct UserMain {
    static func main() {
        ServiceMain.run(UserService())
    }
}
