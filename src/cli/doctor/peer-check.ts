/** What `admb doctor` checks of the devices and of the connection to a peer. */

import type { DeviceName } from '../../device/types.js'
import type { IdentityKey } from '../../network/index.js'
import type { Flags } from '../options/table.js'
import { readKey } from '../peer/files.js'

export interface Check {
  readonly name: string
  readonly ok: boolean
  readonly detail: string
  readonly remedy?: string
}

interface Stored {
  readonly privateKey: IdentityKey | undefined
  readonly fields: [string, string][]
  readonly networkId: string | undefined
}

const NOTHING: Stored = { privateKey: undefined, fields: [], networkId: undefined }

/** @throws MalformedAddressError, UsageError; errors of the store */
export async function checkPeer(peer: string, { networkKey: file, dir }: Flags<'doctor'>): Promise<readonly Check[]> {
  const [{ createNetwork, diagnose, generateIdentityKey, inNetworkWithId, networkIdIn }, { PROTOCOL_VERSION }] =
    await Promise.all([import('../../network/index.js'), import('../../peer/index.js')])
  const networkKey = file === undefined ? undefined : await readKey(file)
  const { privateKey, fields, networkId } = dir === undefined ? NOTHING : await stored(dir)
  const id = networkId ?? (networkKey && networkIdIn(networkKey))
  // Without a model, nothing is compared.
  const hello = inNetworkWithId({ protocol: PROTOCOL_VERSION, fields }, fields.length > 0 ? id : undefined)
  const network = await createNetwork({
    privateKey: privateKey ?? (await generateIdentityKey()),
    listen: [],
    dials: [peer],
    networkKey,
    hello,
    maxFrameBytes: 1 << 20,
    log: () => undefined
  })
  try {
    return await diagnose(network, peer, { hello, isKeyed: networkKey !== undefined })
  } finally {
    await network.stop()
  }
}

/** The identity and learning spec of a state directory, if it has them. */
async function stored(dir: string): Promise<Stored> {
  const [{ Store }, { decodeIdentityKey }, { learningSpecFields, parseSpec }] = await Promise.all([
    import('../../storage/index.js'),
    import('../../network/index.js'),
    import('../../peer/index.js')
  ])
  const store = await Store.openExisting(dir)
  try {
    const text = await store.model()
    return {
      privateKey: store.identity && decodeIdentityKey(store.identity),
      fields: text === undefined ? [] : learningSpecFields(parseSpec(text)),
      networkId: await store.networkId()
    }
  } finally {
    await store.close()
  }
}

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
