# Finds RapidJSON by its header and defines RapidJSON::RapidJSON and RapidJSON_VERSION.
#
# RapidJSON's own package file is not used: it defines no target in the releases that distributions carry.
find_path(RapidJSON_INCLUDE_DIR rapidjson/rapidjson.h)
mark_as_advanced(RapidJSON_INCLUDE_DIR)

if(RapidJSON_INCLUDE_DIR)
  file(STRINGS ${RapidJSON_INCLUDE_DIR}/rapidjson/rapidjson.h lines REGEX "define RAPIDJSON_(MAJOR|MINOR|PATCH)_VERSION")
  string(REGEX MATCHALL "[0-9]+" RapidJSON_VERSION "${lines}")
  list(JOIN RapidJSON_VERSION . RapidJSON_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(RapidJSON REQUIRED_VARS RapidJSON_INCLUDE_DIR VERSION_VAR RapidJSON_VERSION)

if(RapidJSON_FOUND AND NOT TARGET RapidJSON::RapidJSON)
  add_library(RapidJSON::RapidJSON INTERFACE IMPORTED)
  set_target_properties(RapidJSON::RapidJSON PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${RapidJSON_INCLUDE_DIR}")
endif()
