/** `admb doctor --peer`: checks the connection to a peer with the user's keys and model. */
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
