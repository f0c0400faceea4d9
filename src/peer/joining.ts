/**
 * Joining a network: a new peer takes over the learning spec of the network, with its schema, from the first peer that answers, and
 * begins to learn when it holds the network's predictor. If nobody answers, it begins alone.
 */
import { sleep } from '#platform'
import { Asker, generateIdentityKey, type Log, type Network, type PeerTarget } from '../network/index.js'
import { Store } from '../storage/index.js'
import type { LearningSpec } from '../task/learning-spec.js'
import { parseSpec, specText } from '../task/spec-text.js'
import { joins, type PeerOptions } from './options.js'
import { identityOf, networkIdOf } from './startup.js'

/** Time in ms that a peer waits for an answer, and then for a link, before it begins alone. */
export const ALONE_MS = 10_000
/** Time in ms that a linked peer waits for the predictor of its neighbours. */
const LINKED_MS = 60_000
const CHECK_MS = 500
/** Time in ms between two looks for a network with another spec, and for which the peer with the lower id leaves it to the other one. */
const OTHER_MS = 3000
const PATIENT_MS = 30_000
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
  let asker: Asker | undefined
  const ended = new AbortController()
  const timer = setTimeout(() => ended.abort(), ALONE_MS)
  try {
    const privateKey = dir === undefined ? await generateIdentityKey() : await identityOf(store, options.identity)
    const networkId = await networkIdOf(options, store)
    asker = await Asker.start({
      privateKey: options.identity ?? privateKey,
      dials: peers,
      networkKey,
      networkId,
      allow,
      mdns,
      stun,
      maxFrameBytes: MAX_SPEC_BYTES,
      log: () => undefined
    })
    return await firstSpec(asker, peers, mdns ?? false, ended.signal, log)
  } finally {
    clearTimeout(timer)
    ended.abort()
    await asker?.stop()
    await store?.close()
  }
}

/** The spec of a peer, as text. @throws NetworkError */
async function fetchSpec(network: Pick<Network, 'fetch'>, target: PeerTarget, signal: AbortSignal): Promise<string> {
  return new TextDecoder().decode(await network.fetch(target, new TextEncoder().encode(REQUEST), signal))
}

/** Asks all contacts, and those that are found on the local network, until one answers. */
async function firstSpec(
  asker: Asker,
  addresses: readonly string[],
  mdns: boolean,
  signal: AbortSignal,
  log: Log
): Promise<LearningSpec | undefined> {
  return new Promise(resolve => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
    const ask = async (target: PeerTarget): Promise<boolean> => {
      try {
        resolve(parseSpec(await fetchSpec(asker, target, signal)))
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
    // A relay on the way to a contact is discovered as well, and may belong to another network.
    if (mdns) asker.onDiscovered(target => void ask(target))
  })
}

interface Joining {
  readonly id: string
  readonly network: Network
  readonly spec: LearningSpec
  /** Whether the learner still waits. */
  readonly isWaiting: () => boolean
  readonly isLinked: () => boolean
  /** Lets the learner begin. */
  readonly begin: () => void
  /** Called when this peer, which began alone, should join a network with another spec instead. @param contact a peer of it */
  readonly onOther: (contact: string) => void
  readonly log: Log
}

/**
 * Lets a peer begin that is not linked, or does not receive the predictor of its neighbours. If it has begun alone, with a model and a
 * schema of its own, and its contacts turn out to have others, it is told to join them. Two such peers would wait for each other, so the
 * one with the lower id waits longer.
 */
export class JoinWatch {
  readonly #options: Joining
  readonly #stop = new AbortController()

  constructor(options: Joining) {
    this.#options = options
    void this.#watch()
  }

  stop(): void {
    this.#stop.abort()
  }

  async #watch(): Promise<void> {
    const { isWaiting, isLinked, begin, log } = this.#options
    for (let waited = 0; isWaiting() && waited < (isLinked() ? LINKED_MS : ALONE_MS); waited += CHECK_MS)
      if (!(await this.#sleep(CHECK_MS))) return
    if (!isWaiting()) return
    const missing = isLinked()
      ? `predictor from a neighbour for ${LINKED_MS / 1000} s`
      : `link for ${ALONE_MS / 1000} s`
    log('info', `no ${missing}: this peer begins alone`, {})
    begin()
    await this.#findOther()
  }

  /** Looks for a contact with another spec, until this peer is linked. */
  async #findOther(): Promise<void> {
    const { id, network, spec, isLinked, onOther } = this.#options
    const own = specText(spec)
    /** Contacts with the same spec, which need not be asked again while they are connected. */
    let equal = new Set<string>()
    for (let alone = 0; !isLinked(); alone += OTHER_MS) {
      if (!(await this.#sleep(OTHER_MS))) return
      const { peers } = network
      equal = new Set(peers.flatMap(({ id: peer }) => (equal.has(peer) ? [peer] : [])))
      for (const contact of peers) {
        if (equal.has(contact.id)) continue
        const isPatient = id < contact.id && alone < PATIENT_MS
        const theirs = isPatient
          ? undefined
          : await fetchSpec(network, contact, this.#stop.signal).catch(() => undefined)
        if (theirs === own) equal.add(contact.id)
        if (theirs === undefined || theirs === own || isLinked() || this.#stop.signal.aborted) continue
        onOther(contact.id)
        return
      }
    }
  }

  /** @returns whether the watch goes on */
  async #sleep(ms: number): Promise<boolean> {
    await sleep(ms, this.#stop.signal).catch(() => undefined)
    return !this.#stop.signal.aborted
  }
}
