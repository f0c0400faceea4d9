/**
 * Joining a network: a new peer takes over the learning spec of the network, with its schema, from the first peer that answers, and
 * begins to learn when it holds the network's predictor. If nobody answers, it begins alone.
 */
import { sleep } from '#platform'
import { createNetwork, generateIdentityKey, type Log, type Network, type PeerTarget } from '../network/index.js'
import { Store } from '../storage/index.js'
import { type LearningSpec, PROTOCOL_VERSION, parseSpec, specText } from '../task/learning-spec.js'
import { joins, type PeerOptions } from './options.js'
import { identityOf, networkIdOf } from './startup.js'

/** Time in ms that a peer waits for an answer, and then for a link, before it begins alone. */
export const ALONE_MS = 10_000
/** Time in ms that a linked peer waits for the predictor of its neighbours. */
const LINKED_MS = 60_000
const CHECK_MS = 250
const RETRY_MS = 300
/** Maximum size of a spec, which contains class names, columns and tokenizers. */
const MAX_SPEC_BYTES = 1 << 26
const REQUEST = 'spec'

type JoinOptions = Pick<
  PeerOptions,
  'dir' | 'identity' | 'peers' | 'mdns' | 'networkKey' | 'networkId' | 'allow' | 'stun' | 'log'
>

/** The answer to a request for the spec; undefined for other requests. */
export function specAnswer(request: Uint8Array, spec: LearningSpec): Uint8Array | undefined {
  return new TextDecoder().decode(request) === REQUEST ? new TextEncoder().encode(specText(spec)) : undefined
}

/**
 * The learning spec of the network that a peer is about to join; undefined if it joins none, or none of its contacts answers in 10 s.
 * @throws errors of the store and the network
 */
export async function networkSpec(options: JoinOptions): Promise<LearningSpec | undefined> {
  if (!joins(options)) return undefined
  const { dir, peers = [], mdns, networkKey, allow, stun, log } = options
  const store = dir === undefined ? undefined : await Store.open(dir)
  let network: Network | undefined
  const ended = new AbortController()
  const timer = setTimeout(() => ended.abort(), ALONE_MS)
  try {
    const privateKey = dir === undefined ? await generateIdentityKey() : await identityOf(store, options.identity)
    const networkId = await networkIdOf(options, store)
    network = await createNetwork({
      privateKey: options.identity ?? privateKey,
      listen: [],
      dials: peers,
      networkKey,
      networkId,
      allow,
      mdns,
      stun,
      // Nothing is compared: this peer has no spec yet.
      hello: { protocol: PROTOCOL_VERSION, fields: [] },
      maxFrameBytes: MAX_SPEC_BYTES,
      log: () => undefined
    })
    return await firstSpec(network, peers, ended.signal, log)
  } finally {
    clearTimeout(timer)
    ended.abort()
    await network?.stop()
    await store?.close()
  }
}

/** Asks all contacts, and those that are found, until one answers. */
async function firstSpec(
  network: Network,
  addresses: readonly string[],
  signal: AbortSignal,
  log: Log
): Promise<LearningSpec | undefined> {
  return new Promise(resolve => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
    const ask = async (target: PeerTarget): Promise<boolean> => {
      try {
        const bytes = await network.fetch(target, new TextEncoder().encode(REQUEST), signal)
        resolve(parseSpec(new TextDecoder().decode(bytes)))
        return true
      } catch (error) {
        log('debug', `no learning spec from a contact: ${(error as Error).message}`, {})
        return false
      }
    }
    for (const address of addresses) {
      void (async () => {
        while (!signal.aborted && !(await ask({ addresses: [address] }))) await sleep(RETRY_MS)
      })()
    }
    network.onPeer(event => {
      if (event.kind === 'discovered') void ask(event)
    })
  })
}

interface Joining {
  /** Whether the learner still waits. */
  readonly isWaiting: () => boolean
  readonly isLinked: () => boolean
  /** Lets the learner begin. */
  readonly begin: () => void
  readonly log: Log
}

/** Lets a peer begin that is not linked, or does not receive the predictor of its neighbours. */
export class JoinWatch {
  readonly #timer: NodeJS.Timeout
  #waited = 0

  constructor({ isWaiting, isLinked, begin, log }: Joining) {
    this.#timer = setInterval(() => {
      this.#waited += CHECK_MS
      if (!isWaiting()) this.stop()
      else if (this.#waited < (isLinked() ? LINKED_MS : ALONE_MS)) return
      else {
        this.stop()
        const missing = isLinked()
          ? `predictor from a neighbour for ${LINKED_MS / 1000} s`
          : `link for ${ALONE_MS / 1000} s`
        log('info', `no ${missing}: this peer begins alone`, {})
        begin()
      }
    }, CHECK_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
