# Makes the installable add-on:
#   cmake -DSOURCE=.. -DBUILD=.. -DVERSION=.. -DLIBRARY=.. -DPROGRAM=.. -DPLATFORM=.. -P package.cmake
#
# One zip for both kinds of Blender: a legacy add-on (3.4 to 4.1) and an extension (4.2 and later). The library and the
# program bring every library they need beyond the C library; both look in their own folder first (DT_RPATH $ORIGIN, which
# also serves what they bring). Names carry the version, so that an update never meets a file that is in use.
set(root ${BUILD}/addon/toile)
set(lib ${root}/lib/${PLATFORM})
file(REMOVE_RECURSE ${BUILD}/addon)
file(MAKE_DIRECTORY ${lib} ${root}/tables)

file(GLOB sources ${SOURCE}/addon/*.py)
file(COPY ${sources} ${SOURCE}/addon/blender_manifest.toml ${SOURCE}/LICENSE DESTINATION ${root})
configure_file(${SOURCE}/bridge/toile.py ${root}/bridge.py COPYONLY)
foreach(table settings fabrics)
    execute_process(COMMAND ${PROGRAM} ${table} --json OUTPUT_FILE ${root}/tables/${table}.json COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND ${PROGRAM} schema OUTPUT_FILE ${root}/tables/schema.json COMMAND_ERROR_IS_FATAL ANY)

file(GET_RUNTIME_DEPENDENCIES LIBRARIES ${LIBRARY} EXECUTABLES ${PROGRAM}
    RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
    POST_EXCLUDE_REGEXES "/ld-linux[^/]*$" "/lib(c|m|dl|rt|pthread|resolv|util|anl|nsl)\\.so\\.[0-9]+$")
if(missing)
    message(FATAL_ERROR "libraries that were not found: ${missing}")
endif()
foreach(file ${found})
    get_filename_component(name ${file} NAME)       # the name they are asked for by
    file(REAL_PATH ${file} real)
    configure_file(${real} ${lib}/${name} COPYONLY)
endforeach()
file(REAL_PATH ${LIBRARY} real)
configure_file(${real} ${lib}/libtoile-${VERSION}.so COPYONLY)
configure_file(${PROGRAM} ${lib}/toile-${VERSION} COPYONLY)

file(GLOB_RECURSE files RELATIVE ${BUILD}/addon ${root}/*)
list(SORT files)
file(REMOVE ${BUILD}/toile-addon.zip)
execute_process(COMMAND ${CMAKE_COMMAND} -E tar cf ${BUILD}/toile-addon.zip --format=zip ${files}
    WORKING_DIRECTORY ${BUILD}/addon COMMAND_ERROR_IS_FATAL ANY)
