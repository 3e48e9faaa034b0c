# SPDX-License-Identifier: Apache-2.0
"""Print the folder of the PyTorch that is installed for this interpreter, or nothing.

The program looks in the folders in which the interpreter installs packages. It cannot import PyTorch, because
pip hides installed packages from programs that build a package.
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
