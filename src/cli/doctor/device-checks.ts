/** `admb doctor`'s checks of the devices that execute networks, with the remedy for each that does not work. */
import type { DeviceName } from '../../device/types.js'

export interface DeviceCheck {
  readonly name: string
  readonly works: boolean
  readonly detail: string
  readonly remedy?: string
}

/** TensorFlow before wasm, because the device that is opened last stays open. */
const CHECKED: readonly DeviceName[] = ['tensorflow-gpu', 'tensorflow', 'webgpu', 'wasm']

export async function checkDevices(): Promise<DeviceCheck[]> {
  const { openDevice, packageFolder } = await import('../../device/index.js')
  const remedies: Partial<Record<DeviceName, string>> = {
    'tensorflow-gpu': 'with CUDA: npm run install-tensorflow -- gpu',
    tensorflow: 'admb doctor --fix installs it',
    webgpu: `with a GPU: npm install --prefix ${packageFolder('webgpu')} webgpu@0.6.2 @tensorflow/tfjs-backend-webgpu@4.22.0`
  }
  const checks: DeviceCheck[] = []
  for (const name of CHECKED) {
    try {
      const { detail, hasFastProducts } = await openDevice(name)
      checks.push({ name, works: true, detail, remedy: hasFastProducts ? undefined : blasRemedy() })
    } catch (error) {
      const detail = (error as Error).message.replace(`${name}: `, '')
      const lacksDriver = name === 'webgpu' && !detail.includes('not installed')
      checks.push({ name, works: false, detail, remedy: lacksDriver ? DRIVER_REMEDY : remedies[name] })
    }
  }
  return checks
}

const DRIVER_REMEDY = "where a GPU is, install its maker's driver, and on Linux libvulkan1 or the like"

function blasRemedy(): string {
  const advice: Partial<Record<NodeJS.Platform, string>> = {
    linux: "apt-get install libopenblas0-pthread, or your distribution's equivalent",
    darwin: 'brew install openblas',
    win32: 'add the directory of libopenblas.dll to PATH'
  }
  return `with a BLAS it is several times faster: ${advice[process.platform] ?? 'install OpenBLAS'} (ADMB_BLAS names another library)`
}
