/**
 * A process of the soak test. As `victim` it runs one peer that is attacked and reports its resource usage; as `neighbours`
 * it runs three peers that exchange messages and frames with the victim without pause. It ends with its parent.
 */
import { generateIdentityKey } from '../../src/network/keys.js'
import type { Limits } from '../../src/network/limits.js'
import { createNetwork, type Network } from '../../src/network/network.js'
import type { Session } from '../../src/network/session.js'
import { Peer } from '../../src/peer/index.js'
import { serveHttp } from '../../src/server/index.js'

/** The first message of the parent. */
export interface Start {
  readonly role: 'victim' | 'neighbours'
  /** Base64 of a network key file. */
  readonly networkKey: string | undefined
  /** The victim's, for its neighbours. */
  readonly addresses: readonly string[]
  readonly limits: Partial<Limits>
}

/** The answer of both roles to a request. */
export interface Figures {
  readonly rss: number
  readonly heap: number
  readonly handles: number
  readonly connections: number
  readonly sessions: number
  /** Frames that were consumed at the other end. */
  readonly frames: number
  readonly interruptions: number
}

const neighbours = 3
const frameBytes = 64 * 1024
const loopback = ['/ip4/127.0.0.1/tcp/0', '/ip4/127.0.0.1/tcp/0/ws']
const sessions = new Set<Session>()
let frames = 0
let interruptions = 0

async function start({ role, networkKey, addresses, limits }: Start): Promise<void> {
  const create = async (listen: readonly string[]) =>
    createNetwork({
      privateKey: await generateIdentityKey(),
      listen,
      hello: { protocol: 1, fields: [] },
      maxFrameBytes: 2 ** 24,
      limits,
      log: () => undefined,
      ...(networkKey !== undefined && { networkKey: Buffer.from(networkKey, 'base64') })
    })
  if (role === 'victim') {
    const network = await create(loopback)
    network.onSession(exchange)
    setInterval(() => network.publish('beacon', new Uint8Array(100)), 500)
    const http = networkKey === undefined ? await serve() : undefined
    serveFigures(network)
    process.send?.({ addresses: network.addresses, http })
  } else {
    const networks = await Promise.all(Array.from({ length: neighbours }, () => create([])))
    for (const network of networks) exchange(await network.open({ addresses }, AbortSignal.timeout(10_000)))
    serveFigures(networks[0])
    process.send?.({})
  }
}

/** A peer that only serves HTTP, in the same process as the network under attack. */
async function serve(): Promise<string> {
  const features = { constant: false, scale: 'none', classNames: ['no', 'yes'] } as const
  const peer = await Peer.start({
    spec: {
      model: 'logistic',
      dimension: 4,
      rule: { name: 'adagrad' },
      averaging: { name: 'tail' },
      batch: 2,
      features
    },
    listen: [],
    log: () => undefined
  })
  return (await serveHttp({ peer, port: 0 })).url
}

/** Sends control messages and frames while the session is open. */
function exchange(session: Session): void {
  sessions.add(session)
  const frame = new Uint8Array(frameBytes)
  const timer = setInterval(() => {
    session.sendControl(new Uint8Array(100))
    if (session.writable)
      session.sendFrame(frame).then(
        () => frames++,
        () => {}
      )
  }, 20)
  session.start({
    control: () => {},
    status: () => {},
    announcement: () => {},
    fragment: () => {},
    frame: () => {},
    close: () => {
      clearInterval(timer)
      sessions.delete(session)
      interruptions++
    }
  })
}

function serveFigures(network: Network): void {
  process.on('message', () => {
    globalThis.gc?.()
    const { rss, heapUsed } = process.memoryUsage()
    const handles = process.getActiveResourcesInfo().length
    const connections = network.peers.length
    const figures = { rss, heap: heapUsed, handles, connections, sessions: sessions.size, frames, interruptions }
    process.send?.(figures satisfies Figures)
  })
}

process.once('message', (message: Start) => void start(message))
process.once('disconnect', () => process.exit())
