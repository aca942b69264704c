# DOPPLER_TEST_ENV_wgpu and DOPPLER_TEST_ENV_dawn: the environment of a test that runs under that WebGPU provider.
# On a machine without a GPU whose Mesa is too old for Dawn, `tools/setup mesa` unpacks a newer one; without that,
# Dawn finds no device there and its tests skip.
set(DOPPLER_TEST_ENV_wgpu DOPPLER_WEBGPU=wgpu)
set(DOPPLER_TEST_ENV_dawn DOPPLER_WEBGPU=dawn)
if(EXISTS ${DOPPLER_DEPS_DIR}/mesa/lvp_icd.json)
  list(APPEND DOPPLER_TEST_ENV_dawn
    VK_DRIVER_FILES=${DOPPLER_DEPS_DIR}/mesa/lvp_icd.json LD_LIBRARY_PATH=${DOPPLER_DEPS_DIR}/mesa/lib)
endif()
