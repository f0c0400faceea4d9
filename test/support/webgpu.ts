/** What tests on WebGPU do before they begin: they are skipped, with the reason, where there is none. */
import type { Context } from 'mocha'
import { openDevice } from '../../src/device/index.js'

export async function needWebgpu(this: Context): Promise<void> {
  try {
    await openDevice('webgpu')
  } catch (error) {
    console.log(`${(error as Error).message}: tests on it are skipped`)
    this.skip()
  }
}
