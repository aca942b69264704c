# The environment of a test: DOPPLER_TEST_ENV_wgpu and DOPPLER_TEST_ENV_dawn choose a WebGPU provider and, on a machine
# without a GPU, the Vulkan driver that compiles its shaders fastest. DOPPLER_TEST_ENV_dawn_lavapipe is for tests that
# SwiftShader cannot run. `./doppler test` prepares both drivers (tools/setup swiftshader, tools/setup mesa); if
# neither is there, Dawn finds no device and its tests skip.

# Most of a test's time on lavapipe goes into compiling shaders: the tests share one cache of Mesa's.
set(mesa_cache ${CMAKE_BINARY_DIR}/mesa_cache)
file(MAKE_DIRECTORY ${mesa_cache})
set(DOPPLER_TEST_ENV_wgpu DOPPLER_WEBGPU=wgpu MESA_SHADER_CACHE_DIR=${mesa_cache})
# Only lavapipe reads this: no optimisations by LLVM, for tests that make many pipelines and run each a few times.
set(DOPPLER_TEST_UNOPTIMISED GALLIVM_PERF=nopt)

# Only lavapipe reads the width. It compiles shaders for vectors of 128 bits, which also have subgroups of 4, in a
# third of the time of 256 bits.
set(DOPPLER_TEST_ENV_dawn_lavapipe DOPPLER_WEBGPU=dawn MESA_SHADER_CACHE_DIR=${mesa_cache} LP_NATIVE_VECTOR_WIDTH=128
  ${DOPPLER_TEST_UNOPTIMISED})
if(EXISTS ${DOPPLER_DEPS_DIR}/mesa/lvp_icd.json)
  list(APPEND DOPPLER_TEST_ENV_dawn_lavapipe
    VK_DRIVER_FILES=${DOPPLER_DEPS_DIR}/mesa/lvp_icd.json LD_LIBRARY_PATH=${DOPPLER_DEPS_DIR}/mesa/lib)
endif()
# SwiftShader makes a shader in a third to a tenth of the time of Mesa 25 (docs/design/testing.md has figures).
if(EXISTS ${DOPPLER_DEPS_DIR}/swiftshader/icd.json)
  set(DOPPLER_TEST_ENV_dawn DOPPLER_WEBGPU=dawn VK_DRIVER_FILES=${DOPPLER_DEPS_DIR}/swiftshader/icd.json)
else()
  set(DOPPLER_TEST_ENV_dawn ${DOPPLER_TEST_ENV_dawn_lavapipe})
endif()
