/** A peer for programs: promises for inputs and predictions, events for what happens between peers. */
import { Notices } from '../base/errors.js'
import { checkOptions, optionTypes as types } from '../learning/index.js'
import {
  type Prediction as Answer,
  type Log,
  type NeighbourChange,
  Peer,
  type PeerOptions,
  type PeerStatus,
  peerTypes,
  RequestError,
  settleTask,
  WebSocketUpgrades
} from '../peer/index.js'
import type { HttpOptions, HttpServer } from '../server/index.js'
import { serverTypes } from '../server/options.js'
import { type TaskOptions, taskTypes } from '../task/options.js'
import { encodeInputs, type Features, type Label } from './inputs.js'

export type { Answer }

/** Options of a peer that a program starts: its task, its network and its HTTP interface. */
export interface CreatePeerOptions extends TaskOptions, Omit<PeerOptions, 'spec' | 'stream' | 'plugins' | 'log'> {
  /** @default no HTTP */
  readonly http?: Omit<HttpOptions, 'peer' | 'log'>
  /** @default warnings are dropped */
  readonly log?: Log
}

const { stream: _stream, ...ownTypes } = peerTypes
const { flag, number, options } = types
const httpType = options<Omit<HttpOptions, 'peer' | 'log'>>({ ...serverTypes, port: number, joinPage: flag }, ['port'])
const createPeerType = options<CreatePeerOptions>({ ...ownTypes, ...taskTypes, http: httpType })

/** Types of `event.detail` by event. */
export interface PeerEvents {
  /** The peer has made or adopted another predictor. At most four a second, each with the newest status. */
  update: PeerStatus
  /** The peer has adopted another peer's predictor. */
  adopted: PeerStatus
  /** A tree neighbour was linked or unlinked. */
  neighbour: NeighbourChange
  /** Four times a second, while the peer runs. */
  status: PeerStatus
  /** The peer has failed and stopped. */
  failed: Error
}

/** Listener of an event of a peer. */
export type PeerListener<K extends keyof PeerEvents> = (event: CustomEvent<PeerEvents[K]>) => void

/**
 * Starts a peer in this process. Its learner runs in a thread.
 * @example
 * const peer = await createPeer({ features: 2, classNames: ['no', 'yes'], batch: 8 })
 * await peer.learn([0.5, 1], 'yes')
 * const { label, scores } = await peer.predict([0.5, 1])
 * await peer.stop()
 * @throws OptionError, ModelError, PluginError; errors of stream, store, network and HTTP, each a line that says what to do
 */
export async function createPeer(options: CreatePeerOptions): Promise<LearningPeer> {
  checkOptions('the options of createPeer', createPeerType, options)
  const { http, log = () => undefined, upgrades = http?.joinPage ? new WebSocketUpgrades() : undefined } = options
  const notices = new Notices(line => log('warn', line, {}))
  const task = Object.fromEntries(Object.entries(options).filter(([key]) => key in taskTypes))
  const { spec, stream, plugins } = await settleTask(task, { ...options, log }, notices.add)
  notices.show()
  const execution = { ...options.execution, checkpoint: options.checkpoint }
  const own = Object.fromEntries(Object.entries(options).filter(([key]) => key in peerTypes))
  const release = http && (await (await import('../server/index.js')).reserveAddress(http))
  const started = Peer.start({ ...own, upgrades, execution, spec, stream, plugins, log })
  const peer = await started.catch(async error => {
    await release?.()
    throw error
  })
  try {
    await release?.()
    const server = http && (await (await import('../server/index.js')).serveHttp({ ...http, peer, log }))
    return new LearningPeer(peer, server)
  } catch (error) {
    await peer.stop()
    throw error
  }
}

/** A running peer. Inputs are arrays of numbers, or objects by feature number or name. */
export class LearningPeer {
  readonly #peer: Peer
  readonly #server: HttpServer | undefined
  readonly #events = new EventTarget()
  #last: PeerStatus

  /** @internal Use `createPeer`. */
  constructor(peer: Peer, server: HttpServer | undefined) {
    this.#peer = peer
    this.#server = server
    this.#last = peer.status()
    peer.on('status', (status: PeerStatus) => this.#emitChanges(status))
    peer.on('neighbour', (change: NeighbourChange) => this.#emit('neighbour', change))
    peer.on('failed', (error: Error) => this.#emit('failed', error))
  }

  get id(): string {
    return this.#peer.id
  }

  /** Multiaddresses for the option `peers` of other peers. */
  get addresses(): readonly string[] {
    return this.#peer.addresses
  }

  /** URL of the HTTP interface; undefined without one. */
  get url(): string | undefined {
    return this.#server?.url
  }

  status(): PeerStatus {
    return this.#peer.status()
  }

  /**
   * Predicts, then learns.
   * @returns the prediction that was made before learning
   * @throws RequestError for an input that does not fit the model, UnavailableError when too many wait
   */
  async learn(input: Features, label: Label): Promise<Answer> {
    return (await this.learnAll([input], [label]))[0]
  }

  /** Learns many inputs in order, or none if one does not fit the model. */
  learnAll(inputs: readonly Features[], labels: readonly Label[]): Promise<readonly Answer[]> {
    return this.#ask('learn', inputs, labels)
  }

  /** @throws RequestError for an input that does not fit the model, UnavailableError when too many wait */
  async predict(input: Features): Promise<Answer> {
    return (await this.predictAll([input]))[0]
  }

  predictAll(inputs: readonly Features[]): Promise<readonly Answer[]> {
    return this.#ask('predict', inputs, undefined)
  }

  addEventListener<K extends keyof PeerEvents>(type: K, listener: PeerListener<K>, options?: { once?: boolean }): void {
    this.#events.addEventListener(type, listener as (event: Event) => void, options)
  }

  removeEventListener<K extends keyof PeerEvents>(type: K, listener: PeerListener<K>): void {
    this.#events.removeEventListener(type, listener as (event: Event) => void)
  }

  /** Stores a checkpoint, leaves the overlay, and stops. */
  async stop(): Promise<void> {
    // Requests that the peer has begun are answered.
    await Promise.all([this.#server?.close(), this.#peer.stop()])
  }

  async #ask(
    action: 'learn' | 'predict',
    inputs: readonly Features[],
    labels: readonly Label[] | undefined
  ): Promise<readonly Answer[]> {
    if (inputs.length === 0) return []
    const body = encodeInputs(inputs, labels)
    const { predictions } = await this.#peer.request({ action, format: 'jsonl', body })
    return predictions.map(prediction => {
      if ('error' in prediction) throw new RequestError(prediction.error)
      return prediction
    })
  }

  #emitChanges(status: PeerStatus): void {
    const before = this.#last
    this.#last = status
    this.#emit('status', status)
    if (status.adopted > before.adopted) this.#emit('adopted', status)
    if (status.predictor.digest !== before.predictor.digest) this.#emit('update', status)
  }

  #emit<K extends keyof PeerEvents>(type: K, detail: PeerEvents[K]): void {
    this.#events.dispatchEvent(new CustomEvent(type, { detail }))
  }
}
