// A GPU object whose devices a test may touch before the engine gets them.

/** @param {any} gpu @param {(device: any) => void} touch @returns {Promise<any>} */
export async function spiedGpu(gpu, touch) {
  return { wgslLanguageFeatures: gpu.wgslLanguageFeatures, async requestAdapter(options) {
    const adapter = await gpu.requestAdapter(options);
    const { features, limits, info } = adapter;
    return { features, limits, info, async requestDevice(wanted) {
      const device = await adapter.requestDevice(wanted);
      touch(device);
      return device;
    } };
  } };
}

/**
 * Has the device fail the buffer after the first `after` ones, as one without memory does: only a scope tells.
 * @param {any} device
 * @param {number} after */
export function failingAllocation(device, after) {
  /** @type {string[]} */ const scopes = [];
  let asked = 0;
  const { pushErrorScope, popErrorScope } = device;
  device.pushErrorScope = (filter) => {
    scopes.push(filter);
    pushErrorScope.call(device, filter);
  };
  device.popErrorScope = async () => {
    const isMemory = scopes.pop() === 'out-of-memory';
    const error = await popErrorScope.call(device);
    return isMemory && asked++ >= after ? { message: 'no room (a test)' } : error;
  };
  return device;
}
