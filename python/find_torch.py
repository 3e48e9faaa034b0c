# SPDX-License-Identifier: Apache-2.0
"""Print the folder of the PyTorch that is installed for this interpreter, or nothing.

It looks in the interpreter's own places for packages rather than import it: pip hides them from what it
runs to build a package.
"""
import os
import site
import sysconfig

places = [sysconfig.get_path("platlib"), sysconfig.get_path("purelib"), *site.getsitepackages(),
          site.getusersitepackages()]
for place in places:
    if os.path.isfile(os.path.join(place, "torch", "include", "torch", "csrc", "distributed", "c10d",
                                   "Backend.hpp")):
        print(os.path.join(place, "torch"))
        break
