/** Opens a device and prints it as JSON, in a separate process, because a driver may end it. Argument: the device, or `auto`. */
import { openDevice } from '../../src/device/index.js'
import type { DeviceName } from '../../src/device/types.js'

const GPUS = ['tensorflow-gpu', 'webgpu'] as const

/** `auto` takes GPUs only: a WebGPU driver that computes on the processor must be requested by name. */
async function open(asked: DeviceName | 'auto') {
  if (asked !== 'auto') return openDevice(asked)
  const reasons: string[] = []
  for (const name of GPUS) {
    try {
      const device = await openDevice(name)
      if (!device.detail.endsWith('(software)')) return { ...device, reason: [...reasons, device.reason].join('; ') }
      reasons.push(`${name}: ${device.detail}`)
    } catch (error) {
      reasons.push((error as Error).message)
    }
  }
  throw new Error(`no GPU: ${reasons.join('; ')}`)
}

try {
  const { name, detail, reason: why } = await open(process.argv[2] as DeviceName | 'auto')
  process.stdout.write(`${JSON.stringify({ name, detail, why })}\n`)
  process.exit(0)
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exit(1)
}
