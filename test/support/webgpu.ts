/** A mocha hook that skips tests on WebGPU, with the reason, if the device is not available. */
import type { Context } from 'mocha'
import { openDevice } from '../../src/device/index.js'

export async function needWebgpu(this: Context): Promise<void> {
  try {
    await openDevice('webgpu')
  } catch (error) {
    console.log(`skipping tests on webgpu: ${(error as Error).message}`)
    this.skip()
  }
}
