#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tutti as other projects use it: installed, linked in every usual way, and built inside them. Each test
# is a project of its own in a temporary folder; commands and build files are those of
# docs/installing.md.
#
#     embed.sh TEST SOURCE_DIR BUILD_DIR STAGE_DIR CMAKE C_COMPILER C++_COMPILER NM
#
# STAGE_DIR is what the test `install` fills, the others use and `clean_up` removes.
set -eu
test=$1 source=$2 build=$3 stage=$4 cmake=$5 CC=$6 CXX=$7 nm=$8
# The folder has moved since the installation: whatever still names the old place fails.
installed_at=$stage/image/opt/tutti
prefix=$stage/moved

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail()
{
    echo "$test: $*"
    exit 1
}

# The code block of docs/installing.md that follows this mark.
block()
{
    awk -v mark="<!-- test: $1 -->" '
        $0 == mark { marked = 1; next }
        marked && /^```/ { if (inside) exit; inside = 1; next }
        inside { print }' "$source/docs/installing.md" >"$work/block"
    [ -s "$work/block" ] || fail "docs/installing.md has no block \"$1\""
    cat "$work/block"
}

# Run the commands of a block. `cc` is the compiler of the build.
run()
{
    mkdir -p bin
    ln -sf "$(command -v "$CC")" bin/cc
    block "$1" >commands
    PATH=$work/bin:$PATH sh -eux ./commands
}

# The variables that a user of the installed library sets.
use_prefix()
{
    libdir=$(dirname "$(find "$prefix" -name 'libtutti.so')")
    export PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir" PREFIX="$prefix" CC CXX
    cp "$source/examples/01_threads.c" .
}

needs_shared()
{
    readelf -d "$1" | grep -q 'NEEDED.*libtutti\.so\.0'
}

# ---- tests -----------------------------------------------------------------------------------------

test_install()
{
    rm -rf "$stage"
    DESTDIR=$stage/image "$cmake" --install "$build" --prefix /opt/tutti >log || { cat log; exit 1; }
    mv "$installed_at" "$prefix"
    rmdir "$stage/image/opt" "$stage/image" || fail "something was installed outside of the prefix"
    for file in include/tutti.h bin/tutti-run bin/all_reduce_perf share/doc/tutti/LICENSE \
        share/doc/tutti/docs/installing.md share/doc/tutti/examples/01_threads.c; do
        [ -s "$prefix/$file" ] || fail "$file is not installed"
    done
    # The pictures that pages show, and the examples that their tables list, are installed with them.
    find "$prefix/share/doc/tutti" -name '*.md' | while IFS= read -r page; do
        sed -n -e 's/.*!\[[^]]*\](\([^):]*\)).*/\1/p' -e 's/^| `\([a-z0-9_]*\.\(c\|py\)\)` .*/\1/p' "$page" |
            while IFS= read -r file; do
                [ -s "$(dirname "$page")/$file" ] || echo "$page: $file"
            done
    done >absent
    ! [ -s absent ] || { cat absent; fail "these files are not installed"; }
    find "$prefix" \( -name '*.pc' -o -name '*.cmake' \) -print0 |
        xargs -0 grep -lE "/opt/tutti|$build|$source" && fail "these files name a place"
    # The installed programs find the library that is installed with them.
    "$prefix/bin/tutti-run" -n 2 "$prefix/bin/all_reduce_perf" -b 8 -e 8 -n 1
}

test_clean_up()
{
    rm -rf "$stage"
}

test_pkg_config()
{
    use_prefix
    run shared
    needs_shared 01_threads || fail "the program is not linked with the shared library"
    rm 01_threads
    block Makefile >Makefile
    make 01_threads
    ./01_threads 3
    rm 01_threads
    run static
    ! needs_shared 01_threads || fail "the static program needs the shared library"
}

# Of two objects that both have internal names only one would be linked.
test_static_names()
{
    use_prefix
    archive=$libdir/libtutti.a
    "$nm" -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort >static
    "$nm" -D --defined-only "$libdir/libtutti.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
        sort >shared
    [ -s shared ] || fail "the shared library exports nothing"
    diff shared static || fail "the static library has other names (>) than the shared one (<)"
    ! readelf -SW "$archive" | grep -q 'gnu\.lto' || fail "objects need link-time optimization"
}

test_cxx17()
{
    use_prefix
    # shellcheck disable=SC2046 # words of a list
    "$CXX" -std=c++17 -Wall -Wextra -pedantic -Werror -o program "$source/tests/embed/cxx17.cpp" \
        $(pkg-config --cflags --libs tutti) -pthread
    ./program
}

test_find_package()
{
    use_prefix
    block find_package >CMakeLists.txt
    run find_package-commands
    # Both libraries, from where they were built, in a project without C.
    mkdir other
    cat >other/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.22)
project(other LANGUAGES CXX)
find_package(tutti 0.1 REQUIRED COMPONENTS shared static)
foreach(kind shared static)
    add_executable(\${kind} $source/tests/embed/cxx17.cpp)
    set_property(TARGET \${kind} PROPERTY CXX_STANDARD 17)
    target_link_libraries(\${kind} PRIVATE tutti::\${kind} -pthread)
endforeach()
END
    for place in "-DCMAKE_PREFIX_PATH=$prefix" "-Dtutti_DIR=$build"; do
        "$cmake" -S other -B other/build "$place" >log || { cat log; exit 1; }
        "$cmake" --build other/build
        ./other/build/shared
        ./other/build/static
        needs_shared other/build/shared || fail "tutti::shared is not shared"
        ! needs_shared other/build/static || fail "tutti::static is not static"
        rm -r other/build
    done
    # Another major version is refused.
    sed -i 's/find_package(tutti 0.1/find_package(tutti 1.0/' CMakeLists.txt
    if "$cmake" -B later -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1; then
        fail "find_package(tutti 1.0) accepts 0.1"
    fi
    grep -q 'requested version "1.0"' log || { cat log; exit 1; }
    # So is a component that does not exist, and the message says what there is.
    sed -i 's/COMPONENTS shared static/COMPONENTS fast/' other/CMakeLists.txt
    if "$cmake" -S other -B fast -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1; then
        fail "find_package(tutti COMPONENTS fast) succeeds"
    fi
    grep -q 'tutti has no component "fast", only shared and static' log || { cat log; exit 1; }
    # And the static library, where pkg-config does not find what it needs.
    sed -i 's/COMPONENTS fast/COMPONENTS static/' other/CMakeLists.txt
    if PKG_CONFIG_LIBDIR=/nowhere PKG_CONFIG_PATH=/nowhere \
        "$cmake" -S other -B without -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1; then
        fail "find_package finds tutti::static without the libraries that it needs"
    fi
    tr -s '\n ' ' ' <log | grep -q 'needs pkg-config and its modules' || { cat log; exit 1; }
}

# The source as one gets it, without what was built in it.
copy_source()
{
    mkdir "$1"
    (cd "$source" && tar -c --exclude=./build --exclude='./build-*' --exclude=./.git .) | tar -x -C "$1"
}

# An embedded library and nothing else of the project.
expect_only_the_library()
{
    "$cmake" --build build --target help >targets
    grep -q tutti targets || { cat targets; exit 1; }
    ! grep -E '_perf|tutti-run|tutti-topo|test_|gpu_kernels|environment-page' targets ||
        fail "these targets are built inside another project"
    if grep -q 'CMAKE_CXX_COMPILER' build/CMakeCache.txt; then
        fail "the library wants a C++ compiler"
    fi
}

test_add_subdirectory()
{
    cp "$source/examples/01_threads.c" .
    copy_source tutti
    block add_subdirectory >CMakeLists.txt
    "$cmake" -B build -DCMAKE_C_COMPILER="$CC" -DTUTTI_CUDA_ARCHITECTURES= \
        -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
    expect_only_the_library
    grep '"command".*01_threads\.c' build/compile_commands.json >line
    ! grep -E -e '-Wshadow|-fvisibility|-ffp-contract|_GNU_SOURCE' line ||
        fail "flags of the library reach the program"
    "$cmake" --build build -j 2 >log 2>&1 || { tail -n 50 log; exit 1; }
    ./build/01_threads 4
    # And nothing of the library in an installation of that project.
    "$cmake" --install build --prefix "$work/image" >log
    ! find image -type f 2>/dev/null | grep . || fail "the library is installed by another project"
}

# The same library, so it is configured but not built once more.
test_fetch_content()
{
    cp "$source/examples/01_threads.c" .
    copy_source tutti-0.1.0
    tar -cf archive.tar tutti-0.1.0
    block fetch_content >CMakeLists.txt
    "$cmake" -B build -DCMAKE_C_COMPILER="$CC" -DTUTTI_CUDA_ARCHITECTURES= \
        -DTUTTI_ARCHIVE="file://$work/archive.tar"
    expect_only_the_library
    # Settings that a project makes for its own code leave the library as it is: its files are compiled
    # one by one, and users of libtutti.a need no link-time optimization.
    "$cmake" -B other -G "Unix Makefiles" -DCMAKE_C_COMPILER="$CC" -DTUTTI_CUDA_ARCHITECTURES= \
        -DTUTTI_ARCHIVE="file://$work/archive.tar" -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_UNITY_BUILD=ON -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON >log || { cat log; exit 1; }
    rules=other/_deps/tutti-build/CMakeFiles/tutti-objects.dir
    grep -q 'base/log\.c' "$rules/build.make" || fail "CMAKE_UNITY_BUILD reaches the library"
    ! grep -e '-flto' "$rules/flags.make" || fail "CMAKE_INTERPROCEDURAL_OPTIMIZATION reaches the library"
}

test_build_type()
{
    "$cmake" -S "$source" -B build -DCMAKE_C_COMPILER="$CC" -DTUTTI_CUDA_ARCHITECTURES= \
        -DTUTTI_BUILD_TESTS=OFF >log
    grep 'Build type: RelWithDebInfo' log || fail "no line says what is built"
    grep '"command".*base/log\.c' build/compile_commands.json | grep -q -e '-O3' ||
        fail "the library is not optimized"
    "$cmake" -S "$source" -B build -DCMAKE_BUILD_TYPE=Debug >log
    ! grep 'Build type' log || fail "the user's choice is overridden"
    ! grep '"command".*base/log\.c' build/compile_commands.json | grep -q -e '-O3' ||
        fail "a debug build is optimized"
}

# The command that make would run.
test_make()
{
    make -n -C "$source" install PREFIX=/somewhere DESTDIR=/image >commands
    grep -q 'DESTDIR="/image" cmake --install build/release --prefix "/somewhere"' commands ||
        { cat commands; exit 1; }
    # `make perf` measures 64 MiB, as it promises: the sizes come to it exactly.
    make -n -C "$source" perf >commands
    # shellcheck disable=SC2046 # two numbers
    set -- $(sed -n 's/.*all_reduce_perf.* -b \([0-9]*\) -e 64M -f \([0-9]*\).*/\1 \2/p' commands)
    [ $# -eq 2 ] || { cat commands; exit 1; }
    size=$1
    while [ "$size" -lt 67108864 ]; do
        size=$((size * $2))
    done
    [ "$size" -eq 67108864 ] || fail "the sizes of make perf go past 64 MiB, to $size"
    ! grep -E -e '--target (all|test)' commands || fail "make perf builds more than it runs"
    grep -q -e '--build build/release .*--target tutti-perf' commands || { cat commands; exit 1; }
}

# The missing packages are named, and nothing is installed.
test_setup()
{
    if TUTTI_SETUP=no sh "$source/scripts/setup" no-such-package 2>log; then
        fail "a missing package is not told by the exit status"
    fi
    grep -q 'missing:.* no-such-package' log || { cat log; exit 1; }
    # The page lists what it looks for.
    # shellcheck disable=SC2016 # text of the script
    sed -n 's/.*missing="$missing \([a-z0-9+-]*\)".*/\1/p' "$source/scripts/setup" >packages
    [ "$(wc -l <packages)" -ge 12 ] || { cat packages; fail "no packages found in scripts/setup"; }
    while read -r package; do
        grep -qF "\`$package\`" "$source/docs/installing.md" || fail "docs/installing.md does not list $package"
    done <packages
}

test_ctypes()
{
    use_prefix
    block ctypes >program.py
    python3 program.py | grep -F '[1.0, 2.0, 3.0]'
}

# The contents of the packages; scripts/check-package installs them, too.
test_packages()
{
    # Ninja's projects are not built once more before they are packed.
    "$(dirname "$cmake")/cpack" -G DEB --config "$build/CPackConfig.cmake" -B packages \
        -D CPACK_CMAKE_GENERATOR=Ninja >log 2>&1 || { cat log; exit 1; }
    for name in libtutti0 libtutti-dev tutti-tools; do
        set -- packages/"$name"_0.*.deb
        [ -f "$1" ] || { cat log; fail "there is no package $name"; }
        dpkg-deb -c "$1" >"$name.files"
        dpkg-deb -f "$1" >"$name.control"
        grep -q "/usr/share/doc/$name/copyright" "$name.files" || fail "$name has no license"
        ! grep -vE ' \./(usr/.*)?$' "$name.files" || fail "$name has these files outside of /usr"
    done
    grep -q 'libtutti\.so\.0 ->' libtutti0.files
    ! grep -E 'libtutti\.(so|a)$|tutti\.h' libtutti0.files || fail "these belong to libtutti-dev"
    for file in include/tutti.h libtutti.a 'libtutti.so ->' tutti.pc tuttiConfig.cmake; do
        grep -qF "$file" libtutti-dev.files || fail "libtutti-dev has no $file"
    done
    grep -q 'bin/tutti-run$' tutti-tools.files && grep -q 'bin/all_reduce_perf$' tutti-tools.files
    # The library depends only on the libraries that calls need. hwloc is loaded at run time.
    for library in libc6 libsodium libexpat; do
        grep -q "^Depends:.*$library" libtutti0.control || { cat libtutti0.control; exit 1; }
    done
    ! grep "^Depends:.*libjansson" libtutti0.control || fail "libtutti0 depends on libjansson"
    grep -q "^Depends:.*libjansson" tutti-tools.control || { cat tutti-tools.control; exit 1; }
    for name in libtutti0 tutti-tools; do
        ! grep "^Depends:.*libhwloc" $name.control || fail "$name depends on libhwloc"
        grep -q "^Recommends:.*libhwloc" $name.control || { cat $name.control; exit 1; }
    done
    grep -q '^Section: libs$' libtutti0.control
    for name in libtutti-dev tutti-tools; do
        grep -q '^Depends:.*libtutti0 (= ' $name.control || { cat $name.control; exit 1; }
    done
    dpkg-deb --ctrl-tarfile packages/libtutti0_*.deb | tar -xO ./postinst | grep -q ldconfig ||
        fail "installing libtutti0 does not update the loader's cache"
}

"test_$test"
