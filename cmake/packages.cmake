# Four Debian packages, one for each component of the install (script/package):
#   libseen0     libseen.so.0, libseen_store.so.0 and libseen_remote.so.0
#   libseen-dev  headers, static libraries, pkg-config and CMake packages
#   seen         the program, its manual and completions
#   seen-redis   the module, and an example of a configuration
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME seen)
set(CPACK_PACKAGE_VENDOR "the Seen authors")
set(CPACK_PACKAGE_CONTACT "the Seen authors <seen@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENTS_ALL library development program module)

# component, package, section, summary, then what it says below it.
function(seen_package component name section summary)
  string(TOUPPER ${component} c)
  string(JOIN "\n" text ${summary} ${ARGN})
  set(CPACK_DEBIAN_${c}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${c}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${c}_DESCRIPTION ${text} PARENT_SCOPE)
  set(CPACK_COMPONENT_${c}_DESCRIPTION ${text} PARENT_SCOPE)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${name} COMPONENT ${component})
endfunction()

seen_package(library libseen${PROJECT_VERSION_MAJOR} libs
  "Has this been seen before? The libraries"
  "Bloom filters and their relatives, exposure sets for feeds, and stores of both"
  "that survive power loss. libseen needs libc and libm only, libseen_store"
  "also LMDB, libseen_remote also hiredis.")
seen_package(development libseen-dev libdevel
  "Has this been seen before? Headers and static libraries"
  "What programs that use these libraries are built with: headers, static"
  "libraries, pkg-config and CMake packages.")
seen_package(program seen utils
  "Has this been seen before? The program"
  "Removes repeated lines in one pass, builds and asks Bloom filters of its own and"
  "of other systems, keeps what users have been shown, starts Redis with the module.")
seen_package(module seen-redis database
  "Has this been seen before? The module for Redis and Valkey"
  "BF.* and CF.* as existing clients speak them, and SEEN.*: exposure sets, which"
  "remember what every user has been shown.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libseen${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION}-1), liblmdb-dev, libhiredis-dev")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "seen-redis, redis-server")
set(CPACK_DEBIAN_MODULE_PACKAGE_RECOMMENDS "redis-server")
include(CPack)
