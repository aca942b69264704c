# DOPPLER_TEST_ENV_wgpu and DOPPLER_TEST_ENV_dawn: the environment of a test that runs under that WebGPU provider.
# On a machine without a GPU whose Mesa is too old for Dawn, `tools/setup mesa` unpacks a newer one; without that,
# Dawn finds no device there and its tests skip.

# Compiling shaders is most of what a test costs on lavapipe: the tests share one cache of Mesa's.
set(mesa_cache ${CMAKE_BINARY_DIR}/mesa_cache)
file(MAKE_DIRECTORY ${mesa_cache})
set(DOPPLER_TEST_ENV_wgpu DOPPLER_WEBGPU=wgpu MESA_SHADER_CACHE_DIR=${mesa_cache})
# Read by lavapipe only: no optimisations by LLVM, for tests that make many pipelines and run each a few times.
set(DOPPLER_TEST_UNOPTIMISED GALLIVM_PERF=nopt)
set(DOPPLER_TEST_ENV_dawn DOPPLER_WEBGPU=dawn MESA_SHADER_CACHE_DIR=${mesa_cache}
  # Read by lavapipe only. Code of Dawn's shaders is three times as fast to make with vectors of 128 bits and without
  # LLVM's optimisations. It also makes subgroups of 4 under Dawn beside wgpu-native's 8.
  LP_NATIVE_VECTOR_WIDTH=128 ${DOPPLER_TEST_UNOPTIMISED})
if(EXISTS ${DOPPLER_DEPS_DIR}/mesa/lvp_icd.json)
  list(APPEND DOPPLER_TEST_ENV_dawn
    VK_DRIVER_FILES=${DOPPLER_DEPS_DIR}/mesa/lvp_icd.json LD_LIBRARY_PATH=${DOPPLER_DEPS_DIR}/mesa/lib)
endif()
