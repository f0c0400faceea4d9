/** Where a peer listens, its output, and the events that end it. */
import type { Peer, PeerStatus } from '../../peer/index.js'
import type { NetworkStatus } from '../../view/index.js'
import { DEFAULT_PORT } from '../options/table.js'
import { formatMean, formatNumber, ProgressLine, print, printJson } from '../output/output.js'

/** An object of `admb peer --json`. */
export interface PeerObject extends PeerStatus {
  readonly command: 'peer'
  readonly addresses: readonly string[]
  /** URL of its HTTP interface. */
  readonly http: string | undefined
}

export function peerObject(peer: Peer, url: string | undefined): PeerObject {
  return { command: 'peer', ...peer.status(), addresses: peer.addresses, http: url }
}

/**
 * Prints progress until a signal ends the peer.
 * @param failed aborts when the peer has failed; its reason is thrown
 */
export async function attend(peer: Peer, json: boolean, url: string | undefined, failed: AbortSignal): Promise<void> {
  // Before the first line of output, whose reader may send a signal at once.
  const ended = new Promise<void>((resolve, reject) => {
    failed.throwIfAborted()
    failed.addEventListener('abort', () => reject(failed.reason))
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
    // A peer of the demo ends with its parent process.
    process.once('disconnect', () => resolve())
    if (process.send) obey(peer, url)
  })
  const line = new ProgressLine()
  const report = () => (json ? printJson(peerObject(peer, url)) : line.show(() => describe(peer)))
  if (json) report()
  else announce(peer, url)
  peer.on('report', report)
  try {
    await ended
  } finally {
    peer.off('report', report)
    line.clear()
  }
}

/** An order of the parent process of a peer. */
export interface Order {
  /** Peers to block; none ends a partition. */
  readonly block?: readonly string[]
  /** See `Peer.pace`. */
  readonly pace?: { readonly rate: number; readonly perUpdate: number }
}

/** What a peer tells its parent process: its object whenever it changes, and the status that it reports to other peers. */
export interface Told {
  readonly peer?: PeerObject
  readonly status?: NetworkStatus
}

function obey(peer: Peer, url: string | undefined): void {
  const tell = (what: Told) => {
    if (process.connected) process.send?.(what)
  }
  peer.on('report', (status: NetworkStatus) => tell({ status }))
  peer.on('status', () => tell({ peer: peerObject(peer, url) }))
  process.on('message', ({ block, pace }: Order) => {
    if (pace !== undefined) peer.pace(pace.rate, pace.perUpdate)
    else peer.block(block === undefined || block.length === 0 ? undefined : new Set(block))
  })
}

function announce(peer: Peer, url: string | undefined): void {
  print(`peer ${peer.id}`)
  const rank = (address: string) => (address.startsWith('/ip4/127.') || address.startsWith('/ip6/::1') ? 1 : 0)
  const addresses = [...peer.addresses].sort((a, b) => rank(a) - rank(b))
  print(addresses.length > 0 ? 'others join it with one of' : 'it has no listen address, so it can only join others')
  for (const address of addresses) print(`  --peer ${address}`)
  if (url) {
    print(`watch the network at ${url}`)
    print(`status at ${url}/status`)
  }
  print('stop it with Ctrl-C')
}

function describe(peer: Peer): string {
  const { inputs, updates, averageLoss, accuracy, neighbours, privacy } = peer.status()
  const hits = accuracy === undefined ? '' : `, accuracy ${(100 * accuracy).toFixed(2)} %`
  return `${formatNumber(inputs)} inputs, ${formatNumber(updates)} updates, loss ${formatMean(averageLoss, inputs, 4)}${hits}, ${neighbours.length} neighbours${budgetOf(privacy)}`
}

function budgetOf(privacy: PeerStatus['privacy']): string {
  return privacy === undefined ? '' : `, epsilon ${privacy.spent.toPrecision(3)} of ${privacy.epsilon} spent`
}

/** @param start starts a peer with these listen addresses */
export async function startListening(
  asked: readonly string[] | undefined,
  start: (listen: readonly string[]) => Promise<Peer>
): Promise<Peer> {
  if (asked !== undefined) return start(asked)
  try {
    return await start([`/ip4/0.0.0.0/tcp/${DEFAULT_PORT}`])
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_ADDRESS_IN_USE') throw error
    return start(['/ip4/0.0.0.0/tcp/0'])
  }
}
